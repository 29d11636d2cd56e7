// The outcome of a run, as text and as bytes.
#ifndef COLCAST_SERVER_SENDER_FIGURES_H_
#define COLCAST_SERVER_SENDER_FIGURES_H_

#include <string>

#include "server/sender/job.h"
#include "server/sender/sender.h"

namespace colcast::sender {

// One line of JSON. A latency runs from when its call was due, a lateness until it was sent.
std::string Figures(const Job& job, const Outcome& outcome);

// Each CallRecord, the number of kept answers, and for each the number of its call, its size and
// its bytes; integers of eight bytes, little endian.
std::string Records(const Outcome& outcome);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_FIGURES_H_
