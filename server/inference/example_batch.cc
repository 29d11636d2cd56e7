#include "server/inference/example_batch.h"

#include <chrono>
#include <utility>

#include "server/inference/example_answer.h"
#include "server/inference/input_bytes.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::inference {
namespace {

Status CheckContext(const ExampleInput& input, int64_t max_expanded_bytes) {
  const auto examples = static_cast<int64_t>(input.examples.size());
  if (static_cast<int64_t>(input.context.size()) <= max_expanded_bytes / examples) {
    return OkStatus();
  }
  return ResourceExhausted("example_list_with_context: a context of ", input.context.size(),
                           " bytes in front of each of ", examples, " examples fills over ",
                           max_expanded_bytes, " bytes, which is max_expanded_bytes");
}

engine::ExpansionStats StatsOf(const ExampleInput& input) {
  engine::ExpansionStats stats;
  stats.rows = static_cast<int64_t>(input.examples.size());
  if (stats.rows == 1 || input.context.empty()) return stats;
  tensorflow::Example context;
  context.ParseFromString(input.context);
  stats.columns_sent_once = static_cast<int64_t>(context.features().feature().size());
  stats.bytes_saved = (stats.rows - 1) * static_cast<int64_t>(input.context.size());
  return stats;
}

std::string WithContext(const std::string& context, const Bytes& example) {
  std::string joined;
  joined.reserve(context.size() + example.size());
  joined = context;
  joined.resize(context.size() + example.size());
  example.CopyTo(joined.data() + context.size());
  return joined;
}

}  // namespace

Status ExampleBatch::Fill(const ExampleInput& input, const CallOptions& options) {
  if (input.examples.empty()) {
    return InvalidArgument(
        "Input is empty: expected at least one tf.Example in input.example_list or "
        "input.example_list_with_context");
  }
  if (Status status = CheckContext(input, options.max_expanded_bytes); !status.ok()) return status;
  expansion_ = StatsOf(input);
  request_.Clear();
  Column* const column = request_.AddColumn(kExamplesInput);
  column->dtype = DT_STRING;
  column->dims = {size()};
  column->values.strings.reserve(input.examples.size());
  for (const Bytes& example : input.examples) {
    column->values.AddString(input.context.empty()
                                 ? example
                                 : Bytes(request_.Keep(WithContext(input.context, example))));
  }
  return OkStatus();
}

Status ExampleBatch::Enter(const Servable& servable, const std::vector<std::string>& signatures,
                           const CallOptions& options) const {
  if (options.gate == nullptr) return OkStatus();
  return options.gate->Enter(servable, signatures, size(), InputBytes(request_, size()));
}

Status ExampleBatch::Call(Method method, const Servable& servable,
                          const std::string& signature_name,
                          const std::vector<std::string>& outputs, metrics::CallRecord* record,
                          std::unique_ptr<engine::Outputs>* result) {
  request_.mutable_model_spec()->signature_name = signature_name;
  request_.mutable_output_filter()->assign(outputs.begin(), outputs.end());
  const auto start = std::chrono::steady_clock::now();
  Status status = (servable.model().*method)(request_, result);
  if (record->run_start == decltype(record->run_start)()) record->run_start = start;
  record->runtime += std::chrono::steady_clock::now() - start;
  if (!status.ok()) return status;
  record->expansion = (*result)->expansion();
  record->expansion.columns_sent_once = expansion_.columns_sent_once;
  record->expansion.bytes_saved = expansion_.bytes_saved;
  return status;
}

}  // namespace colcast::inference
