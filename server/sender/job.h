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

// Reads the number of requests, the size and bytes of each, the number of calls, and each call in
// the form of Call; integers are 64-bit little-endian. Reads no further. INVALID_ARGUMENT says
// where the input ends too early, or which call is wrong.
Status ReadJob(std::FILE* file, Job* job);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_JOB_H_
