// The rows of the flag table, grouped by subject, and functions for values that need further
// processing.
#ifndef COLCAST_SERVER_FLAGS_ROWS_H_
#define COLCAST_SERVER_FLAGS_ROWS_H_

#include <string>
#include <vector>

#include "server/flags/flags.h"
#include "server/flags/table.h"

namespace colcast::flags {

// The subjects of flags, in the order of --help and of docs/operations.md.
inline constexpr char kListening[] = "listening";
inline constexpr char kModels[] = "models";
inline constexpr char kRunning[] = "running";
inline constexpr char kAnswers[] = "answers";
inline constexpr char kStates[] = "states";
inline constexpr char kTables[] = "tables";
inline constexpr char kItemTables[] = "item tables";
inline constexpr char kExamples[] = "tf.Examples";
inline constexpr char kGraphs[] = "graphs";
inline constexpr char kLimits[] = "limits";
inline constexpr char kCallers[] = "callers";
inline constexpr char kOperation[] = "operation";
inline constexpr char kWithoutEffect[] = "TensorFlow Serving's, without effect or refused";

// Flag values that need further processing.
struct Given {
  // Options of features that are off unless a flag enables them.
  http::HttpServer::Options http;
  int rest_api_port = 0;
  tracing::Tracer::Options tracing;
  std::string trace_endpoint;

  // Paths of files to read.
  std::string batching_parameters_file;
  std::string item_table_config_file;
  std::string monitoring_config_file;
  std::string ssl_config_file;
  std::string tensorflow_session_config_file;

  bool enable_batching = false;
  bool tensor_content = false;
  int tensorflow_session_parallelism = 0;
  int tensorflow_intra_op_parallelism = 0;
  int tensorflow_inter_op_parallelism = 0;
  int num_workers = 0;
  int64_t max_run_bytes = 0;
  models::ModelConfig model;
  std::vector<std::string> grpc_channel_arguments;
  std::vector<std::string> item_table;
  std::vector<std::string> ready_labels;
};

// `given` and `options` must outlive the table.
void AddServerRows(Given* given, ServerOptions* options, Table* table);
void AddModelRows(Given* given, ServerOptions* options, Table* table);
void AddRunRows(Given* given, ServerOptions* options, Table* table);
void AddRowsWithoutEffect(std::vector<std::string>* warnings, Table* table);

// Prefixes an error about a flag's value with the flag's name.
Status OfFlag(const char* name, Status status);

// Process `given` and set `options`. Return INVALID_ARGUMENT, naming the flag.
Status FinishServer(const Given& given, ServerOptions* options);
Status FinishModels(const Given& given, ServerOptions* options);
Status FinishRuns(const Given& given, ServerOptions* options);

}  // namespace colcast::flags

#endif  // COLCAST_SERVER_FLAGS_ROWS_H_
