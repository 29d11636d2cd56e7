// The result of a run, as text and as bytes.
#ifndef COLCAST_SERVER_SENDER_FIGURES_H_
#define COLCAST_SERVER_SENDER_FIGURES_H_

#include <string>

#include "server/sender/job.h"
#include "server/sender/sender.h"

namespace colcast::sender {

// The figures as one line of JSON. A latency starts when a call was due; so does a lateness, which
// ends when the call was sent.
std::string Figures(const Job& job, const Outcome& outcome);

// Writes each CallRecord, the number of kept answers, and for each of these the number of its call,
// its size and its bytes. Integers have eight bytes, little endian.
std::string Records(const Outcome& outcome);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_FIGURES_H_
