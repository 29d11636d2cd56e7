#include "server/inference/batching.h"

#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>

#include "server/base/thread.h"
#include "server/protos/session_bundle_config.pb.h"
#include "server/protos/text_proto.h"

namespace colcast::inference {
namespace {

using Proto = tensorflow::serving::BatchingParameters;
using google::protobuf::Int64Value;

constexpr char kPerModelFile[] = "/batching_params.pbtxt";
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// A numeric field of the file: its value, or TensorFlow Serving's default, and its bounds.
struct Number {
  Number(const char* name, bool given, const Int64Value& field, int64_t otherwise, int64_t least,
         int64_t most = kMax)
      : name(name), value(given ? field.value() : otherwise), least(least), most(most) {}

  const char* const name;
  const int64_t value;
  const int64_t least;
  const int64_t most;
};

Status CheckAllowedSizes(const std::string& path, const Proto& proto, int64_t last) {
  const auto& sizes = proto.allowed_batch_sizes();
  for (int i = 1; i < sizes.size(); ++i) {
    if (sizes[i] <= sizes[i - 1]) {
      return InvalidArgument(path, ": allowed_batch_sizes entries must be in increasing order; ",
                             sizes[i], " follows ", sizes[i - 1]);
    }
  }
  if (!sizes.empty() && sizes[0] < 1) {
    return InvalidArgument(path, ": allowed_batch_sizes: got ", sizes[0], ", expected at least 1");
  }
  if (!sizes.empty() && sizes[sizes.size() - 1] != last) {
    return InvalidArgument(path, ": the last of allowed_batch_sizes must equal ",
                           proto.enable_large_batch_splitting().value() ? "max_execution_batch_size"
                                                                        : "max_batch_size",
                           "; last one was ", sizes[sizes.size() - 1], "; expected ", last);
  }
  return OkStatus();
}

Status FromProto(const std::string& path, const Proto& proto, BatchingParameters* parameters) {
  const Number max_size("max_batch_size", proto.has_max_batch_size(), proto.max_batch_size(), 1000,
                        1);
  const Number timeout("batch_timeout_micros", proto.has_batch_timeout_micros(),
                       proto.batch_timeout_micros(), 0, 0);
  const Number max_enqueued("max_enqueued_batches", proto.has_max_enqueued_batches(),
                            proto.max_enqueued_batches(), 10, 0);
  const Number threads("num_batch_threads", proto.has_num_batch_threads(),
                       proto.num_batch_threads(), 1, 1, kMostThreads);
  const bool split = proto.enable_large_batch_splitting().value();
  const Number max_run("max_execution_batch_size", proto.has_max_execution_batch_size(),
                       proto.max_execution_batch_size(), max_size.value, 1);
  for (const Number& number : {max_size, timeout, max_enqueued, threads, max_run}) {
    if (number.value < number.least) {
      return InvalidArgument(path, ": ", number.name, ": got ", number.value,
                             ", expected at least ", number.least);
    }
    if (number.value > number.most) {
      return InvalidArgument(path, ": ", number.name, ": got ", number.value, ", expected at most ",
                             number.most);
    }
  }
  if (split && max_run.value > max_size.value) {
    return InvalidArgument(path, ": max_execution_batch_size: got ", max_run.value,
                           ", expected at most max_batch_size, ", max_size.value);
  }
  const int64_t most = split ? max_run.value : max_size.value;
  if (Status status = CheckAllowedSizes(path, proto, most); !status.ok()) return status;

  scheduling::BatchLimits& limits = parameters->batching.limits;
  limits.share = false;
  limits.max_rows = most;
  limits.timeout = std::chrono::microseconds(std::min(timeout.value, kMax / 1000));
  // As in TensorFlow Serving, 0 means 1; otherwise no request could wait.
  const int64_t batches = std::max<int64_t>(1, max_enqueued.value);
  limits.max_waiting_rows = batches > kMax / most ? kMax : batches * most;
  limits.max_request_rows = max_size.value;
  if (split) limits.max_slice_rows = most;
  engine::BatchRules& rules = parameters->batching.rules;
  rules.any_signature = true;
  rules.pad_variable_length_inputs = proto.pad_variable_length_inputs();
  rules.allowed_batch_sizes.assign(proto.allowed_batch_sizes().begin(),
                                   proto.allowed_batch_sizes().end());
  if (proto.has_num_batch_threads()) {
    parameters->num_threads = static_cast<int>(threads.value);
  }
  parameters->thread_pool_name = proto.thread_pool_name().value();
  return OkStatus();
}

}  // namespace

Status ReadBatchingParameters(const std::string& path, BatchingParameters* parameters) {
  Proto proto;
  if (!path.empty()) {
    if (Status status = ReadTextProto(path, &proto); !status.ok()) return status;
  }
  return FromProto(path, proto, parameters);
}

Status BatchingOf(const BatchingOptions& options, const std::string& directory,
                  Batching* batching) {
  if (options.batching && options.per_model) {
    const std::string path = directory + kPerModelFile;
    std::error_code error;
    const bool exists = std::filesystem::exists(path, error);
    if (error) return Unavailable("cannot look for ", path, ": ", error.message());
    if (exists) {
      BatchingParameters parameters;
      Status status = ReadBatchingParameters(path, &parameters);
      *batching = std::move(parameters.batching);
      return status;
    }
  } else if (options.batching) {
    *batching = *options.batching;
    return OkStatus();
  }
  batching->limits.join = options.join_waiting_requests;
  batching->limits.max_time = options.max_time;
  return OkStatus();
}

}  // namespace colcast::inference
