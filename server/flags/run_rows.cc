#include <chrono>

#include "server/base/thread.h"
#include "server/flags/rows.h"

namespace colcast::flags {

void AddRunRows(Given* given, ServerOptions* options, Table* table) {
  scheduling::WorkerPool::Options& workers = options->workers;
  table->Add("num_workers", &given->num_workers,
             "requests that run at the same time; 0: one per core. A long one that cannot be split "
             "runs beside one worker",
             {0, kMostThreads});
  table->Add("max_queued_requests", &workers.max_queued_requests,
             "requests that may wait for a worker; one more is answered RESOURCE_EXHAUSTED", {1});
  table->Add("max_run_bytes", &given->max_run_bytes,
             "memory that all runs in flight may take together, as learned from earlier ones; a "
             "request beyond it runs in slices or is answered RESOURCE_EXHAUSTED; 0: half of what "
             "the machine, the control group or the address space has",
             {0});
  table->Add("enable_serialization_as_tensor_content", &given->tensor_content,
             "answer with tensor_content in place of typed fields");
  table->Add("enable_signature_method_name_check", &options->calls.check_method_names,
             "run a signature only through the API its method_name names");

  // Names that begin with "enable" or "batching" are TensorFlow Serving's, with the same meaning.
  inference::BatchingOptions& batching = options->models.loader.batching;
  table->Add(
      "enable_batching", &given->enable_batching,
      "requests of every signature may run together, as --batching_parameters_file says; the "
      "last bits of scores may depend on what a request runs with");
  table->Add("batching_parameters_file", &given->batching_parameters_file,
             "with --enable_batching: a tensorflow.serving.BatchingParameters in protobuf's text "
             "format; without it TensorFlow Serving's defaults hold");
  table->Add(
      "enable_per_model_batching_parameters", &batching.per_model,
      "with --enable_batching: batching_params.pbtxt in a version's directory says how it is "
      "batched; a version without one is not. Threads are --batching_parameters_file's");
  table->Add("join_waiting_requests", &batching.join_waiting_requests,
             "without batching: requests that wait run together where rows are known not to depend "
             "on each other (columnar_late, and signatures recorded as such); scores differ by "
             "rounding");
  table->AddTime<std::chrono::milliseconds>(
      "max_piece_milliseconds", &workers.longest_slice,
      "a request that is estimated to take longer is a long one; while short ones come it is split "
      "into slices of so long (four times as long with --long_request_nice)",
      {0.01, 1e6});
  table->Add(
      "long_request_nice", &workers.long_request_nice,
      "while short requests come, long ones run on threads that are so nice (1 to 19), which "
      "short ones interrupt; 0: on the workers, where short ones wait for a slice to end",
      {0, 19});

  engine::Options& engine = options->engine;
  table->Add("tensorflow_session_parallelism", &given->tensorflow_session_parallelism,
             "threads for one operation and for the operations of one request; 0: as "
             "--tensorflow_intra_op_parallelism and --tensorflow_inter_op_parallelism say",
             {0, kMostThreads});
  table->Add("tensorflow_intra_op_parallelism", &given->tensorflow_intra_op_parallelism,
             "threads one operation may use; 0: one", {0, kMostThreads});
  table->Add("tensorflow_inter_op_parallelism", &given->tensorflow_inter_op_parallelism,
             "threads the operations of requests are spread over; 0: each request runs on its "
             "worker's thread alone",
             {0, kMostThreads});
  table->Add(
      "tensorflow_session_config_file", &given->tensorflow_session_config_file,
      "tensorflow.ConfigProto in text form that sessions start from; threads may also be set "
      "by the flags for them, which win");
  using engine::ExampleTranscoding;
  table->AddChoice<ExampleTranscoding>(
      "example_transcoding", &engine.example_transcoding,
      "what answers tf.Examples where the model was exported with columnar signatures: exact "
      "(columns, the same bits), late (the user's part once), off (TensorFlow's parser)",
      {{"exact", ExampleTranscoding::kExact},
       {"late", ExampleTranscoding::kLate},
       {"off", ExampleTranscoding::kOff}});
  using engine::GraphOptimization;
  table->AddChoice<GraphOptimization>(
      "graph_optimization", &engine.graph_optimization,
      "whether a model's graphs are rewritten when it is loaded: exact (the same bits), fast (what "
      "a file of --graph_choices allows), off",
      {{"exact", GraphOptimization::kExact},
       {"fast", GraphOptimization::kFast},
       {"off", GraphOptimization::kOff}});
  table->Add("graph_choices", &engine.graph_choices,
             "file that `colcast tune --graphs` wrote, or a folder of them, for "
             "--graph_optimization=fast; read when a model is loaded");
  table->AddChoice<bool>("map_tables", &engine.map_tables,
                         "whether tables of which served signatures only look rows up stay in the "
                         "checkpoint's files, mapped: auto, off (docs/tables.md)",
                         {{"auto", true}, {"off", false}});
  table->Add("map_tables_min_bytes", &engine.map_tables_min_bytes,
             "with --map_tables=auto: tables of fewer bytes are read into memory", {0});
  table->Add("lock_tables", &engine.lock_tables,
             "read mapped tables into memory at load and keep them there, so that no request waits "
             "for the "
             "disk; a version is not loaded if the process may not lock so much (`ulimit -l`)");
  table->Add(
      "unserved_signatures", &engine.unserved_signatures,
      "signatures of all models, separated by commas, that are not served, so that what they "
      "alone need is not kept in memory");
  table->Add("max_request_columns", &engine.max_request_columns, "most inputs of a request", {1});
  table->Add("max_request_rows", &engine.max_request_rows, "most rows of a request", {1});
  table->Add("max_expanded_bytes", &engine.max_expanded_bytes,
             "most bytes that the tensors of a request may take beyond what was sent",
             {0, 1 << 30});
  table->Add("user_state_bytes", &engine.user_state_bytes,
             "most bytes of user states to keep for the user's next request, all models together; "
             "0: none (docs/states.md)",
             {0});
  table->Add("item_state_bytes", &engine.item_state_bytes,
             "most bytes of item states to keep for later requests, all models together; 0: none "
             "(docs/states.md)",
             {0});
}

}  // namespace colcast::flags
