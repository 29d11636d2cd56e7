// How requests to a servable may be batched, according to the flags and, where the operator asked
// for it, the version's own file.
#ifndef COLCAST_SERVER_INFERENCE_BATCHING_H_
#define COLCAST_SERVER_INFERENCE_BATCHING_H_

#include <optional>
#include <string>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/scheduling/request_class.h"

namespace colcast::inference {

// The rules of one servable.
struct Batching {
  scheduling::BatchLimits limits;
  engine::BatchRules rules;
};

// The rules of all servables, from the flags.
struct BatchingOptions {
  // --join_waiting_requests: if batching is off, joins waiting requests that may run together.
  bool join_waiting_requests = true;
  // If batching is off, requests run together only while the run is estimated to take no longer
  // than this, or than four times its first request alone.
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

// Reads the file at `path`; an empty path means TensorFlow Serving's defaults. Returns NOT_FOUND,
// or INVALID_ARGUMENT naming the file and either the field, its value and what was expected, or the
// line and column of a syntax error.
Status ReadBatchingParameters(const std::string& path, BatchingParameters* parameters);

// The rules for the version in `directory`. With per_model they come from batching_params.pbtxt in
// that directory; a version without this file is not batched. Errors are those of
// ReadBatchingParameters().
Status BatchingOf(const BatchingOptions& options, const std::string& directory, Batching* batching);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_BATCHING_H_
