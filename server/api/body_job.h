// Reads the body of a call before it runs: decompresses it, parses JSON.
#ifndef COLCAST_SERVER_API_BODY_JOB_H_
#define COLCAST_SERVER_API_BODY_JOB_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "server/api/call.h"
#include "server/base/status.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::api {

// The body of a call as received. Belongs to the call's codec.
class Body {
 public:
  virtual ~Body() = default;

  virtual size_t body_bytes() const = 0;
  virtual bool is_compressed() const = 0;
  // Reads the body, decompressed to at most `max_bytes`. If it fails because the decompressed body
  // is longer, sets *inflates_too_far.
  virtual Status ReadBody(Call* call, size_t max_bytes, bool* inflates_too_far) = 0;
  // Extends the call's deadline by the time that a reader thread spent on the body.
  virtual void Extend(scheduling::Clock::duration /*time*/) {}
};

// Options for the threads that read long bodies: half as many as cores, because reading needs much
// memory bandwidth. Their lower priority keeps other requests from waiting for them.
scheduling::WorkerPool::Options ReaderOptions();

// A worker reads a short body and then runs the call. A body that is long, or turns out to be long
// when it is decompressed, is read by one of backend.readers, and the call then waits for a worker.
// `body` belongs to the call's codec.
void ReadAndRun(size_t max_bytes, Body* body, Call* call);

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_BODY_JOB_H_
