// Reads the body of a call before it runs: inflates it, parses JSON.
#ifndef COLCAST_SERVER_API_BODY_JOB_H_
#define COLCAST_SERVER_API_BODY_JOB_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "server/api/call.h"
#include "server/base/status.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::api {

// A call's body, as it came. Part of the call's codec.
class Body {
 public:
  virtual ~Body() = default;

  virtual size_t body_bytes() const = 0;
  virtual bool is_compressed() const = 0;
  // Reads it, inflated to at most `max_bytes`. *inflates_too_far: the error is that it is longer.
  virtual Status ReadBody(Call* call, size_t max_bytes, bool* inflates_too_far) = 0;
  // A reader took so long, which does not count as waiting.
  virtual void Extend(scheduling::Clock::duration /*time*/) {}
};

// Of the threads that read long bodies. There are half as many as cores, because reading also moves
// much memory, and they have a lower priority, so that other requests do not wait for them.
scheduling::WorkerPool::Options ReaderOptions();

// Has a worker read a short body and then run the call. A body that is long, or turns out to be
// when it is inflated, is read by one of backend.readers; the call then waits for a worker.
// `body` is part of the call's codec.
void ReadAndRun(size_t max_bytes, Body* body, Call* call);

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_BODY_JOB_H_
