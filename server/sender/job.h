// What to send, and when.
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
    double due;        // seconds after the first send may begin; in order
    uint64_t request;  // its place in `requests`
  };

  std::vector<std::string> requests;  // serialized
  std::vector<Call> calls;
};

// Reads the number of requests, each one's size and bytes, the number of calls, and these as Call
// has them: integers of eight bytes, little endian. Leaves what follows. INVALID_ARGUMENT says
// where it ends too soon, and which call is wrong.
Status ReadJob(std::FILE* file, Job* job);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_JOB_H_
