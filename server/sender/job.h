// The requests to send, and when.
#ifndef COLCAST_SERVER_SENDER_JOB_H_
#define COLCAST_SERVER_SENDER_JOB_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "server/base/status.h"

namespace colcast::sender {

struct Job {
  struct Call {
    double due;        // seconds after the run begins; ascending
    uint64_t request;  // index in `requests`
  };

  std::vector<std::string> requests;  // serialized
  std::vector<Call> calls;
};

// Reads, in this order: the number of requests; the size and the bytes of each request; the number
// of calls; `due` and `request` of each call. All numbers are 64-bit little-endian. Leaves later
// bytes unread. Returns INVALID_ARGUMENT if the input ends too early or a call is wrong.
Status ReadJob(std::FILE* file, Job* job);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_JOB_H_
