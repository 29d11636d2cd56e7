// One signature of a loaded model: a callable, resolved once. It knows of no other way to answer a
// request than to run itself (server/engine/program/programs.h chooses among ways).
#ifndef COLCAST_SERVER_ENGINE_SIGNATURE_H_
#define COLCAST_SERVER_ENGINE_SIGNATURE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/callables.h"
#include "server/engine/engine.h"
#include "server/engine/list_columns.h"
#include "server/engine/record/row_record.h"
#include "server/engine/wire_column.h"
#include "server/wire/predict_request.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// The outputs of one run: `aliases[i]` names `tensors[i]`. The aliases belong to the signature or
// are among `names`.
struct RunResult {
  std::vector<std::string_view> aliases;
  std::vector<tensorflow::Tensor> tensors;
  std::deque<std::string> names;
  ExpansionStats expansion;
};

// The column that a source in this folder is.
inline const WireColumn* AsWire(const ColumnSource* source) {
  return static_cast<const WireColumn*>(source);
}

// A request as a signature receives it. Made to be used again; the request must outlive its use.
struct ReceivedRequest {
  // Set by Signature::Receive().
  std::vector<int> outputs;           // those asked for: positions in the sorted aliases, rising
  std::vector<WireColumn> columns;    // in the request's order; no value has been decoded
  std::vector<ReceivedInput> inputs;  // the columns by name

  // Set by Signature::Plan().
  SignatureInputs::Scratch plan;

  // Both REQUIRE a plan.
  int64_t rows() const { return plan.plan.rows; }
  ExpansionStats Expansion() const;
};

// Immutable: any number of threads may use it at once.
class Signature {
 public:
  // `record`: what the model's export recorded of its rows; nothing is known without. `session`
  // must outlive the signature.
  static absl::StatusOr<std::unique_ptr<Signature>> Create(const tensorflow::SignatureDef& declared,
                                                           tensorflow::Session* session,
                                                           const Options& options,
                                                           const RowRecord& record = {});

  // Prepares the callable for all outputs, so that the first request does not pay for it, and loads
  // the libraries of ops that it lacks.
  absl::Status Prepare() const;

  const SignatureInputs& inputs() const { return inputs_; }
  const std::vector<std::string>& output_aliases() const { return output_aliases_; }  // sorted
  const std::vector<int>& all_outputs() const { return all_outputs_; }
  const RowRecord& record() const { return record_; }
  const ListColumns& lists() const { return lists_; }

  // What a request may ask for, max_expanded_bytes and max_request_rows above all.
  const Options& limits() const { return options_; }

  // What every input takes.
  struct Takes {
    bool rows = false;              // any number of rows
    bool rows_or_settings = false;  // or it is a scalar
    bool rows_or_one_row = false;   // or has one row
    bool row_index = false;         // one of them is row_to_<domain>
  };
  const Takes& takes() const { return takes_; }

  // Whether all outputs are dense tensors, without which nothing can be run.
  bool can_be_fetched() const { return unfetchable_.ok(); }

  // Whether rows of these outputs, positions in the sorted aliases, have the same shape whatever
  // the request.
  bool RowsHaveOneShape(const std::vector<int>& outputs) const;

  // Reads what a request is: which outputs, which columns of which shapes, and where they belong.
  // RESOURCE_EXHAUSTED beyond max_request_columns, INVALID_ARGUMENT for an output that is unknown
  // or named twice, and for a column that lies about its values.
  absl::Status Receive(const DecodedRequest& request, ReceivedRequest* received) const;

  // Applies the expansion rule to a request that was received, here or by a signature with inputs
  // of the same names; its errors are SignatureInputs::Plan()'s.
  absl::Status Plan(ReceivedRequest* received) const {
    return inputs_.Plan(received->inputs, received->plan.positions, &received->plan);
  }

  // Sets `*feeds` to a tensor for each input: what came for it (null: its default), repeated to
  // `rows` if it takes rows and one came. Tensors that it holds are filled again. REQUIRES what
  // Plan() checks.
  absl::Status BuildFeeds(absl::Span<const WireColumn* const> columns, int64_t rows,
                          std::vector<tensorflow::Tensor>* feeds) const;

  // Runs on tensors by position in inputs(). `outputs` are positions in the sorted aliases, rising.
  absl::Status RunFeeds(const std::vector<tensorflow::Tensor>& feeds,
                        const std::vector<int>& outputs, RunResult* result) const;

  // As RunFeeds(). FAILED_PRECONDITION, with its name, where an output has other than `rows` rows.
  absl::Status RunRows(const std::vector<tensorflow::Tensor>& feeds,
                       const std::vector<int>& outputs, int64_t rows, RunResult* result) const;

  // Sets the outputs as they are for no candidate: no rows, unknown dimensions 0.
  void NoRows(const std::vector<int>& outputs, RunResult* result) const;

 private:
  Signature(SignatureInputs inputs, const Options& options, const RowRecord& record)
      : inputs_(std::move(inputs)), options_(options), record_(record), lists_(inputs_, record) {}

  // Sets the positions, in the sorted aliases, of the outputs that a request asks for.
  // INVALID_ARGUMENT for a filter that names an unknown output or one output twice.
  absl::Status SelectOutputs(const std::vector<std::string_view>& filter,
                             std::vector<int>* outputs) const;

  void AddOutput(const std::string& alias, const tensorflow::TensorInfo& info);

  const SignatureInputs inputs_;
  const Options options_;
  const RowRecord record_;
  const ListColumns lists_;
  Takes takes_;
  std::vector<std::string> output_aliases_;  // sorted
  std::vector<int> all_outputs_;
  std::vector<tensorflow::Tensor> no_rows_;  // of each, without rows
  std::vector<bool> rows_have_one_shape_;    // of each
  absl::Status unfetchable_;  // what SelectOutputs() answers if an output is no dense tensor
  std::unique_ptr<Callables> callables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SIGNATURE_H_
