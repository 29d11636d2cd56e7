#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/base/machine.h"
#include "server/base/text_proto.h"
#include "server/base/thread.h"
#include "server/flags/rows.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace colcast::flags {
namespace {

void ReadWorkers(const Given& given, ServerOptions* options) {
  scheduling::WorkerPool::Options& workers = options->workers;
  workers.num_workers = given.num_workers > 0 ? given.num_workers : AvailableCores();
  workers.memory.max_bytes = given.max_run_bytes > 0 ? given.max_run_bytes : TotalMemory() / 2;
  workers.memory.available = [] { return AvailableMemory(); };
  if (given.tensor_content) options->encoding = TensorEncoding::kTensorContent;
  options->calls.max_request_rows = options->engine.max_request_rows;
  options->calls.max_expanded_bytes = options->engine.max_expanded_bytes;
}

// To be called after ReadWorkers(), because --num_workers overrides the file's num_batch_threads.
Status ReadBatching(const Given& given, ServerOptions* options) {
  scheduling::WorkerPool::Options& workers = options->workers;
  inference::BatchingOptions& batching = options->models.loader.batching;
  batching.max_time = workers.longest_slice;
  if (!given.enable_batching) {
    if (!given.batching_parameters_file.empty()) {
      return InvalidArgument("--batching_parameters_file=", given.batching_parameters_file,
                             " is set without setting --enable_batching to true");
    }
    if (std::exchange(batching.per_model, false)) {
      options->warnings.push_back(
          "--enable_per_model_batching_parameters=true has no effect: it needs --enable_batching");
    }
    return OkStatus();
  }
  inference::BatchingParameters parameters;
  Status status = inference::ReadBatchingParameters(given.batching_parameters_file, &parameters);
  if (!status.ok()) {
    status.message = "--batching_parameters_file: " + status.message;
    return status;
  }
  batching.batching = std::move(parameters.batching);
  workers.describe_all = true;
  if (parameters.num_threads && given.num_workers == 0) {
    workers.num_workers = *parameters.num_threads;
  }
  if (!parameters.thread_pool_name.empty()) workers.thread_name = parameters.thread_pool_name;
  return OkStatus();
}

// TensorFlow creates as many threads as the file asks for, so the number is limited here.
Status CheckThreads(const std::string& path, const tensorflow::ConfigProto& config) {
  std::vector<std::pair<const char*, int>> threads = {
      {"intra_op_parallelism_threads", config.intra_op_parallelism_threads()},
      {"inter_op_parallelism_threads", config.inter_op_parallelism_threads()}};
  for (const auto& pool : config.session_inter_op_thread_pool()) {
    threads.emplace_back("session_inter_op_thread_pool: num_threads", pool.num_threads());
  }
  for (const auto& [name, number] : threads) {
    if (number <= kMostThreads) continue;
    return InvalidArgument("--tensorflow_session_config_file: ", path, ": ", name, ": got ", number,
                           ", expected at most ", kMostThreads);
  }
  return OkStatus();
}

// The session's file applies where no flag is given.
Status ReadSession(const Given& given, engine::Options* options) {
  const int both = given.tensorflow_session_parallelism;
  int intra = both > 0 ? both : given.tensorflow_intra_op_parallelism;
  int inter = both > 0 ? both : given.tensorflow_inter_op_parallelism;
  if (!given.tensorflow_session_config_file.empty()) {
    tensorflow::ConfigProto config;
    Status status = ReadTextProto(given.tensorflow_session_config_file, &config);
    if (!status.ok()) {
      status.message = "--tensorflow_session_config_file: " + status.message;
      return status;
    }
    status = CheckThreads(given.tensorflow_session_config_file, config);
    if (!status.ok()) return status;
    // TensorFlow uses a negative number for what 0 means here: the caller's thread.
    if (intra == 0) intra = std::max(0, config.intra_op_parallelism_threads());
    if (inter == 0) inter = std::max(0, config.inter_op_parallelism_threads());
    options->session_config = config.SerializeAsString();
  }
  options->intra_op_parallelism = std::max(1, intra);
  options->inter_op_parallelism = inter;
  return OkStatus();
}

}  // namespace

Status FinishRuns(const Given& given, ServerOptions* options) {
  ReadWorkers(given, options);
  Status status = ReadBatching(given, options);
  if (status.ok() && !options->engine.graph_choices.empty() &&
      options->engine.graph_optimization != engine::GraphOptimization::kFast) {
    return InvalidArgument("--graph_choices needs --graph_optimization=fast");
  }
  return status.ok() ? ReadSession(given, &options->engine) : status;
}

}  // namespace colcast::flags
