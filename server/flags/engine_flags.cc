#include <absl/flags/flag.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "server/base/text_proto.h"
#include "server/base/thread_limit.h"
#include "server/flags/parts.h"
#include "server/flags/range.h"
#include "server/wire/describe.h"
#include "tensorflow/core/protobuf/config.pb.h"

ABSL_FLAG(int32_t, tensorflow_session_parallelism, 0,
          "threads for one operation and for the operations of one request; 0: as "
          "--tensorflow_intra_op_parallelism and --tensorflow_inter_op_parallelism say");
ABSL_FLAG(int32_t, tensorflow_intra_op_parallelism, 0, "threads one operation may use; 0: one");
ABSL_FLAG(int32_t, tensorflow_inter_op_parallelism, 0,
          "threads the operations of requests are spread over; 0: each request runs on its "
          "worker's thread alone");

ABSL_FLAG(std::string, example_transcoding, "exact",
          "what answers tf.Examples where the model was exported with columnar signatures: exact "
          "(columns, the same bits), late (the user's part once), off (TensorFlow's parser)");

ABSL_FLAG(std::string, graph_optimization, "exact",
          "whether a model's graphs are rewritten when it is loaded, where that is proved and "
          "measured to be faster: exact (the same bits), fast (within --graph_tolerance), off");
ABSL_FLAG(
    double, graph_tolerance, 0.01,
    "what --graph_optimization=fast may change of an output, as a share of its largest value");
ABSL_FLAG(
    int32_t, graph_measuring_ms, 1000,
    "CPU time for which a model's rewritten graphs are proved and measured when it is loaded; "
    "0: exact ones are used without");
ABSL_FLAG(std::vector<std::string>, unserved_signatures, {},
          "signatures of all models, separated by commas, that are not served, so that what they "
          "alone need is not kept in memory");
ABSL_FLAG(std::string, graph_choices_directory, "",
          "folder in which it is kept which graphs were chosen; empty: beside each model");

ABSL_FLAG(int64_t, max_request_columns, 10'000, "most inputs of a request");
ABSL_FLAG(int64_t, max_request_rows, 1 << 20, "most rows of a request");
ABSL_FLAG(int64_t, max_expanded_bytes, 1 << 30,
          "most bytes that the tensors of a request may take beyond what was sent");

ABSL_FLAG(int64_t, user_state_bytes, 64 << 20,
          "most bytes of user states to keep for the user's next request, all models together; 0: "
          "none (docs/states.md)");
ABSL_FLAG(int64_t, item_state_bytes, 64 << 20,
          "most bytes of item states to keep for later requests, all models together; 0: none "
          "(docs/states.md)");
ABSL_FLAG(int64_t, pair_bytes, 0,
          "most bytes of outputs to keep for the same user and item in the same context; 0: none");

ABSL_FLAG(std::string, tensorflow_session_config_file, "",
          "tensorflow.ConfigProto in text form that sessions start from; threads may also be set "
          "by the flags for them, which win");

namespace colcast::flags {
namespace {

Status ReadExampleTranscoding(engine::ExampleTranscoding* transcoding) {
  using engine::ExampleTranscoding;
  const std::string mode = absl::GetFlag(FLAGS_example_transcoding);
  if (mode == "exact") {
    *transcoding = ExampleTranscoding::kExact;
  } else if (mode == "late") {
    *transcoding = ExampleTranscoding::kLate;
  } else if (mode == "off") {
    *transcoding = ExampleTranscoding::kOff;
  } else {
    return InvalidArgument("--example_transcoding: expected exact, late or off, got ",
                           Quoted(mode));
  }
  return OkStatus();
}

Status ReadGraphOptimization(engine::Options* options) {
  using engine::GraphOptimization;
  const std::string mode = absl::GetFlag(FLAGS_graph_optimization);
  if (mode == "exact") {
    options->graph_optimization = GraphOptimization::kExact;
  } else if (mode == "fast") {
    options->graph_optimization = GraphOptimization::kFast;
  } else if (mode == "off") {
    options->graph_optimization = GraphOptimization::kOff;
  } else {
    return InvalidArgument("--graph_optimization: expected exact, fast or off, got ", Quoted(mode));
  }
  options->graph_tolerance = absl::GetFlag(FLAGS_graph_tolerance);
  options->graph_measuring_ms = absl::GetFlag(FLAGS_graph_measuring_ms);
  options->unserved_signatures = absl::GetFlag(FLAGS_unserved_signatures);
  options->graph_choices_directory = absl::GetFlag(FLAGS_graph_choices_directory);
  return OkStatus();
}

}  // namespace

Status ReadEngineFlags(engine::Options* options) {
  Status status = CheckRanges({{FLAGS_tensorflow_session_parallelism, 0, kMostThreads},
                               {FLAGS_tensorflow_intra_op_parallelism, 0, kMostThreads},
                               {FLAGS_tensorflow_inter_op_parallelism, 0, kMostThreads},
                               {FLAGS_max_request_columns, 1},
                               {FLAGS_max_request_rows, 1},
                               {FLAGS_max_expanded_bytes, 0, 1 << 30},
                               {FLAGS_user_state_bytes, 0},
                               {FLAGS_item_state_bytes, 0},
                               {FLAGS_pair_bytes, 0},
                               {FLAGS_graph_tolerance, 0, 1},
                               {FLAGS_graph_measuring_ms, 0}});
  const int both = absl::GetFlag(FLAGS_tensorflow_session_parallelism);
  options->intra_op_parallelism =
      both > 0 ? both : std::max(1, absl::GetFlag(FLAGS_tensorflow_intra_op_parallelism));
  options->inter_op_parallelism =
      both > 0 ? both : absl::GetFlag(FLAGS_tensorflow_inter_op_parallelism);
  if (status.ok()) status = ReadExampleTranscoding(&options->example_transcoding);
  if (status.ok()) status = ReadGraphOptimization(options);
  options->max_request_columns = absl::GetFlag(FLAGS_max_request_columns);
  options->max_request_rows = absl::GetFlag(FLAGS_max_request_rows);
  options->max_expanded_bytes = absl::GetFlag(FLAGS_max_expanded_bytes);
  options->user_state_bytes = absl::GetFlag(FLAGS_user_state_bytes);
  options->item_state_bytes = absl::GetFlag(FLAGS_item_state_bytes);
  options->pair_bytes = absl::GetFlag(FLAGS_pair_bytes);
  return status;
}

Status ReadSessionFlags(engine::Options* options) {
  const std::string file = absl::GetFlag(FLAGS_tensorflow_session_config_file);
  if (file.empty()) return OkStatus();
  tensorflow::ConfigProto config;
  if (Status status = ReadTextProto(file, &config); !status.ok()) {
    status.message = "--tensorflow_session_config_file: " + status.message;
    return status;
  }
  const bool both = absl::GetFlag(FLAGS_tensorflow_session_parallelism) > 0;
  if (!both && absl::GetFlag(FLAGS_tensorflow_intra_op_parallelism) == 0 &&
      config.intra_op_parallelism_threads() > 0) {
    options->intra_op_parallelism = config.intra_op_parallelism_threads();
  }
  // Below 0 is TensorFlow's word for what 0 is here: the caller's thread.
  if (!both && absl::GetFlag(FLAGS_tensorflow_inter_op_parallelism) == 0 &&
      config.inter_op_parallelism_threads() > 0) {
    options->inter_op_parallelism = config.inter_op_parallelism_threads();
  }
  options->session_config = config.SerializeAsString();
  return OkStatus();
}

}  // namespace colcast::flags
