// What requests may run together, and in what slices. The names that begin with "enable" or
// "batching" are TensorFlow Serving's, with its meaning.
#include <absl/flags/flag.h>

#include <chrono>
#include <string>
#include <utility>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(bool, enable_batching, false,
          "requests of every signature may run together, as --batching_parameters_file says; the "
          "last bits of scores may depend on what a request runs with");
ABSL_FLAG(std::string, batching_parameters_file, "",
          "with --enable_batching: a tensorflow.serving.BatchingParameters in protobuf's text "
          "format; without it TensorFlow Serving's defaults hold");
ABSL_FLAG(bool, enable_per_model_batching_parameters, false,
          "with --enable_batching: batching_params.pbtxt in a version's directory says how it is "
          "batched; a version without one is not. Threads are --batching_parameters_file's");
ABSL_FLAG(bool, join_waiting_requests, true,
          "without batching: requests that wait run together where rows are known not to depend on "
          "each other (columnar_late, and signatures recorded as such); scores differ by rounding");
ABSL_FLAG(double, max_piece_milliseconds, 2,
          "a request that is estimated to take longer is a long one; while short ones come it is "
          "split into slices of so long (four times as long with --long_request_nice)");
ABSL_FLAG(int32_t, long_request_nice, 0,
          "while short requests come, long ones run on threads that are so nice (1 to 19), which "
          "short ones interrupt; 0: on the workers, where short ones wait for a slice to end");

namespace colcast::flags {

Status ReadBatchingFlags(scheduling::WorkerPool::Options* workers, bool num_workers_given,
                         inference::BatchingOptions* batching, std::vector<std::string>* warnings) {
  if (Status status = CheckRanges(
          {{FLAGS_max_piece_milliseconds, 0.01, 1e6}, {FLAGS_long_request_nice, 0, 19}});
      !status.ok()) {
    return status;
  }
  workers->longest_slice = std::chrono::nanoseconds(
      static_cast<int64_t>(absl::GetFlag(FLAGS_max_piece_milliseconds) * 1e6));
  workers->long_request_nice = absl::GetFlag(FLAGS_long_request_nice);
  batching->max_time = workers->longest_slice;
  batching->join_waiting_requests = absl::GetFlag(FLAGS_join_waiting_requests);
  const std::string file = absl::GetFlag(FLAGS_batching_parameters_file);
  if (!absl::GetFlag(FLAGS_enable_batching)) {
    if (!file.empty()) {
      return InvalidArgument("--batching_parameters_file=", file,
                             " is set without setting --enable_batching to true");
    }
    if (absl::GetFlag(FLAGS_enable_per_model_batching_parameters)) {
      warnings->push_back(
          "--enable_per_model_batching_parameters=true has no effect: it needs --enable_batching");
    }
    return OkStatus();
  }
  inference::BatchingParameters parameters;
  if (Status status = inference::ReadBatchingParameters(file, &parameters); !status.ok()) {
    status.message = "--batching_parameters_file: " + status.message;
    return status;
  }
  batching->per_model = absl::GetFlag(FLAGS_enable_per_model_batching_parameters);
  batching->batching = std::move(parameters.batching);
  workers->describe_all = true;
  if (parameters.num_threads && !num_workers_given) {
    workers->num_workers = *parameters.num_threads;
  }
  if (!parameters.thread_pool_name.empty()) workers->thread_name = parameters.thread_pool_name;
  return OkStatus();
}

}  // namespace colcast::flags
