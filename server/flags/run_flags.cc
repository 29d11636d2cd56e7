#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/flags/rows.h"
#include "server/protos/text_proto.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace colcast::flags {

void AddRunRows(Given* given, ServerOptions* options, Table* table) {
  scheduling::WorkerPool::Options& workers = options->workers;
  table->Begin(kRunning);
  table->Add(
      "num_workers", &given->num_workers,
      "requests that run at the same time; 0 means one per core. A single worker has a thread "
      "beside it for long requests that cannot be split",
      {0, kMostThreads});
  table->Add("max_queued_requests", &workers.max_queued_requests,
             "requests that may wait for a worker; further ones are answered RESOURCE_EXHAUSTED",
             {1});
  table->Begin(kLimits);
  table->Add(
      "max_run_bytes", &given->max_run_bytes,
      "memory that all runs in flight may use together, as estimated from earlier runs; a "
      "request beyond it runs in slices or is answered RESOURCE_EXHAUSTED; 0 means half of the "
      "machine's, control group's or address space's memory",
      {0});
  table->Begin(kAnswers);
  table->Add("enable_serialization_as_tensor_content", &given->tensor_content,
             "answer with tensor_content instead of typed fields");
  table->Add("enable_signature_method_name_check", &options->calls.check_method_names,
             "run a signature only through the API its method_name names");

  // Names that begin with "enable" or "batching" are TensorFlow Serving's, with the same meaning.
  inference::BatchingOptions& batching = options->models.loader.batching;
  table->Begin(kRunning);
  table->Add("enable_batching", &given->enable_batching,
             "requests for every signature may run together, within --batching_parameters_file; "
             "the last bits of scores may depend on which requests run together");
  table->Add("batching_parameters_file", &given->batching_parameters_file,
             "with --enable_batching: a tensorflow.serving.BatchingParameters in protobuf's text "
             "format; without it TensorFlow Serving's defaults apply");
  table->Add(
      "enable_per_model_batching_parameters", &batching.per_model,
      "with --enable_batching: a version is batched as batching_params.pbtxt in its directory "
      "says, and not batched without this file. --batching_parameters_file still sets the threads");
  table->Add(
      "join_waiting_requests", &batching.join_waiting_requests,
      "without batching: waiting requests run together if their rows are known to be independent "
      "(columnar_late, and signatures recorded as such); scores may differ by rounding");
  table->AddTime<std::chrono::milliseconds>(
      "max_piece_milliseconds", &workers.longest_slice,
      "a request estimated to take longer is a long one; while short ones arrive, it is split into "
      "slices of this time (four times this with --long_request_nice)",
      {0.01, 1e6});
  table->Add(
      "long_request_nice", &workers.long_request_nice,
      "while short requests arrive, long ones run on threads with this nice value (1 to 19), which "
      "short ones preempt; with 0 they run on the workers, where short ones wait for a slice to "
      "end",
      {0, 19});

  engine::Options& engine = options->engine;
  table->Add("tensorflow_session_parallelism", &given->tensorflow_session_parallelism,
             "threads for one operation and for the operations of one request; 0 means as "
             "--tensorflow_intra_op_parallelism and --tensorflow_inter_op_parallelism say",
             {0, kMostThreads});
  table->Add("tensorflow_intra_op_parallelism", &given->tensorflow_intra_op_parallelism,
             "threads one operation may use; 0 means one", {0, kMostThreads});
  table->Add(
      "tensorflow_inter_op_parallelism", &given->tensorflow_inter_op_parallelism,
      "threads over which the operations of requests are spread; with 0 each request runs only "
      "on its worker's thread",
      {0, kMostThreads});
  table->Add("tensorflow_session_config_file", &given->tensorflow_session_config_file,
             "tensorflow.ConfigProto in text form for the sessions; flags for threads override it");
  using engine::ExampleTranscoding;
  table->Begin(kExamples);
  table->AddChoice<ExampleTranscoding>(
      "example_transcoding", &engine.example_transcoding,
      "how tf.Examples are answered if the model was exported with columnar signatures: exact (as "
      "columns, bit-identical), late (the user's part computed once), off (by TensorFlow's parser)",
      {{"exact", ExampleTranscoding::kExact},
       {"late", ExampleTranscoding::kLate},
       {"off", ExampleTranscoding::kOff}});
  using engine::GraphOptimization;
  table->Begin(kGraphs);
  table->AddChoice<GraphOptimization>(
      "graph_optimization", &engine.graph_optimization,
      "how a model's graphs are rewritten when it is loaded: exact (bit-identical results), fast "
      "(also rewrites that --graph_choices allows), off",
      {{"exact", GraphOptimization::kExact},
       {"fast", GraphOptimization::kFast},
       {"off", GraphOptimization::kOff}});
  table->Add("graph_choices", &engine.graph_choices,
             "file that `colcast tune --graphs` wrote, or a folder of them, for "
             "--graph_optimization=fast; read when a model is loaded");
  table->Begin(kTables);
  table->AddChoice<bool>("map_tables", &engine.map_tables,
                         "whether tables in which served signatures only look up rows stay mapped "
                         "in the checkpoint's files: auto, off (docs/tables.md)",
                         {{"auto", true}, {"off", false}});
  table->Add("map_tables_min_bytes", &engine.map_tables_min_bytes,
             "with --map_tables=auto: smaller tables are read into memory", {0});
  table->Begin(kGraphs);
  table->Add("unserved_signatures", &engine.unserved_signatures,
             "comma-separated signatures, of all models, that are not served; data that only they "
             "need is not kept in memory");
  table->Begin(kLimits);
  table->Add("max_request_columns", &engine.max_request_columns,
             "maximum number of inputs of a request", {1});
  table->Add("max_request_rows", &engine.max_request_rows, "maximum number of rows of a request",
             {1});
  table->Add("max_expanded_bytes", &engine.max_expanded_bytes,
             "maximum bytes that the tensors of a request may take beyond the bytes sent",
             {0, 1 << 30});
  table->Begin(kStates);
  table->Add("user_state_bytes", &engine.user_state_bytes,
             "maximum bytes of cached user states, all models together; 0 turns the cache off "
             "(docs/stages.md)",
             {0});
  table->Add("item_state_bytes", &engine.item_state_bytes,
             "maximum bytes of cached item states, all models together; 0 turns the cache off "
             "(docs/stages.md)",
             {0});
}

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

// Call after ReadWorkers(): --num_workers overrides num_batch_threads in the file.
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
  if (!status.ok()) return OfFlag("batching_parameters_file", std::move(status));
  batching.batching = std::move(parameters.batching);
  workers.describe_all = true;
  if (parameters.num_threads && given.num_workers == 0) {
    workers.num_workers = *parameters.num_threads;
  }
  if (!parameters.thread_pool_name.empty()) workers.thread_name = parameters.thread_pool_name;
  return OkStatus();
}

// Limits the numbers of threads, because TensorFlow creates as many as the file asks for.
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

// The session file's values apply to flags that are not given.
Status ReadSession(const Given& given, engine::Options* options) {
  const int both = given.tensorflow_session_parallelism;
  int intra = both > 0 ? both : given.tensorflow_intra_op_parallelism;
  int inter = both > 0 ? both : given.tensorflow_inter_op_parallelism;
  if (!given.tensorflow_session_config_file.empty()) {
    tensorflow::ConfigProto config;
    Status status = ReadTextProto(given.tensorflow_session_config_file, &config);
    if (!status.ok()) return OfFlag("tensorflow_session_config_file", std::move(status));
    status = CheckThreads(given.tensorflow_session_config_file, config);
    if (!status.ok()) return status;
    // A negative number means the caller's thread in TensorFlow; here, 0 does.
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
