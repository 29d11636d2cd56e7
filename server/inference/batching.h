// How requests to a servable may be batched, according to flags and, if a flag enables it, to a
// file in the version's directory.
#ifndef COLCAST_SERVER_INFERENCE_BATCHING_H_
#define COLCAST_SERVER_INFERENCE_BATCHING_H_

#include <optional>
#include <string>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/scheduling/request_queue.h"

namespace colcast::inference {

// How requests to one servable are batched.
struct Batching {
  scheduling::BatchLimits limits;
  engine::BatchRules rules;
};

// How requests to all servables are batched, according to flags.
struct BatchingOptions {
  // --join_waiting_requests: joins waiting requests that may run together. Used if batching is off.
  bool join_waiting_requests = true;
  // While batching is off, the estimated time of a joined run must not exceed this or four times
  // its first request's own time, whichever is longer.
  std::chrono::nanoseconds max_time = std::chrono::milliseconds(2);
  std::optional<Batching> batching;  // --enable_batching
  bool per_model = false;            // --enable_per_model_batching_parameters
};

// The contents of a TensorFlow Serving BatchingParameters file.
struct BatchingParameters {
  Batching batching;
  std::optional<int> num_threads;
  std::string thread_pool_name;  // empty if the file has none
};

// Reads the file at `path`, or uses TensorFlow Serving's defaults if `path` is empty. Returns
// NOT_FOUND or INVALID_ARGUMENT. Errors name the file and either the field, its value and what was
// expected, or the position of a syntax error.
Status ReadBatchingParameters(const std::string& path, BatchingParameters* parameters);

// The batching for the version in `directory`. With per_model, it comes from batching_params.pbtxt
// in that directory; without that file, batching is off for the version. Returns the errors of
// ReadBatchingParameters(), or UNAVAILABLE if the directory cannot be read.
Status BatchingOf(const BatchingOptions& options, const std::string& directory, Batching* batching);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_BATCHING_H_
