// The result of a run, as text and as bytes.
#ifndef COLCAST_SERVER_SENDER_FIGURES_H_
#define COLCAST_SERVER_SENDER_FIGURES_H_

#include <string>

#include "server/sender/job.h"
#include "server/sender/sender.h"

namespace colcast::sender {

// The figures as one line of JSON. Latency is the time from when a call was due to its answer;
// lateness, from when it was due to when it was sent.
std::string Figures(const Job& job, const Outcome& outcome);

// Serializes all CallRecords, the number of kept answers, and for each of these the number of its
// call, its size and its bytes. These numbers are 64-bit little-endian.
std::string Records(const Outcome& outcome);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_FIGURES_H_
