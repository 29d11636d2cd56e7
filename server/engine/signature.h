// One signature of a loaded model and its callables. A Signature can only run itself;
// server/engine/program/programs.h chooses among the ways to answer a request.
#ifndef COLCAST_SERVER_ENGINE_SIGNATURE_H_
#define COLCAST_SERVER_ENGINE_SIGNATURE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/callables.h"
#include "server/engine/engine.h"
#include "server/engine/list_columns.h"
#include "server/engine/record/row_record.h"
#include "server/engine/row_trials.h"
#include "server/engine/wire_column.h"
#include "server/wire/predict_request.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// The outputs of one run: `aliases[i]` names `tensors[i]`. The aliases point into the signature or
// into `names`.
struct RunResult {
  std::vector<std::string_view> aliases;
  std::vector<tensorflow::Tensor> tensors;
  std::list<std::string> names;  // unlike a deque, an empty list allocates nothing
  ExpansionStats expansion;
};

// Downcasts a source, which in this folder is always a WireColumn.
inline const WireColumn* AsWire(const ColumnSource* source) {
  return static_cast<const WireColumn*>(source);
}

// A request as a signature receives it. The object can be reused; the request must outlive each
// use.
struct ReceivedRequest {
  // Set by Signature::Receive(). `outputs` are the requested ones, as ascending positions in the
  // sorted aliases.
  std::vector<int> outputs;
  std::vector<WireColumn> columns;    // in the request's order; values are not decoded
  std::vector<ReceivedInput> inputs;  // the columns by name

  // Applies the expansion rule for `with`, which may be the inputs of another signature with the
  // same names. Errors are those of SignatureInputs::Plan().
  absl::Status Plan(const SignatureInputs& with) {
    return with.Plan(inputs, plan.positions, &plan);
  }
  SignatureInputs::Scratch plan;

  // All REQUIRE a plan.
  int64_t rows() const { return plan.plan.rows; }
  // The positions of the inputs that the plan repeats.
  std::vector<int> OneRowInputs(const SignatureInputs& inputs) const;
  ExpansionStats Expansion() const;
};

// Immutable: any number of threads may use it at once.
class Signature {
 public:
  // `record` is what the model's export recorded about the signature's rows; without it, nothing is
  // known. `tables` are the mapped tables that the signature's graph reads. `session` must outlive
  // the signature.
  static absl::StatusOr<std::unique_ptr<Signature>> Create(const tensorflow::SignatureDef& declared,
                                                           tensorflow::Session* session,
                                                           const Options& options,
                                                           const RowRecord& record = {},
                                                           std::vector<const void*> tables = {});

  // Prepares the callable for all outputs, so that the first request does not pay for it, and loads
  // libraries of missing ops.
  absl::Status Prepare() const;

  const SignatureInputs& inputs() const { return inputs_; }

  // The inputs of a signature whose one-row inputs are repeated only where a trial asks for it;
  // no input is batched. Null for other signatures.
  const SignatureInputs* as_sent() const { return as_sent_.has_value() ? &*as_sent_ : nullptr; }
  // The trial. REQUIRES as_sent().
  bool NeedsRepeated(const std::vector<int>& one_row, const std::vector<int>& outputs) const {
    return trials_.NeedRepeated(*this, one_row, outputs);
  }

  const std::vector<std::string>& output_aliases() const { return output_aliases_; }  // sorted
  const std::vector<int>& all_outputs() const { return all_outputs_; }
  const RowRecord& record() const { return record_; }
  const ListColumns& lists() const { return lists_; }
  const std::vector<const void*>& tables() const { return tables_; }

  struct Traits {
    // Properties that hold for every input, except for `runs_alone`.
    bool takes_rows = false;
    bool takes_rows_or_settings = false;  // a setting is a scalar
    bool takes_rows_or_one_row = false;
    // Whether requests never share runs: because an input row_to_<domain> counts from its own
    // request's first row, or because an output is not a dense tensor, so that the signature cannot
    // run.
    bool runs_alone = false;
  };
  const Traits& traits() const { return traits_; }

  // Whether rows of these outputs (positions in the sorted aliases) have the same shape in every
  // request.
  bool RowsHaveOneShape(const std::vector<int>& outputs) const;

  // Reads a request's outputs and columns, with their shapes and positions. Returns
  // RESOURCE_EXHAUSTED beyond max_request_columns; INVALID_ARGUMENT for an output that is unknown
  // or repeated, and for a column whose values do not fit its shape.
  absl::Status Receive(const DecodedRequest& request, ReceivedRequest* received) const;

  // Runs the signature on `feeds`, in the order of inputs(). `outputs` are positions in the sorted
  // aliases, ascending.
  absl::Status RunFeeds(const std::vector<tensorflow::Tensor>& feeds,
                        const std::vector<int>& outputs, RunResult* result) const;

  // Sets the outputs to those of a request without candidates: zero rows, and size 0 for each
  // unknown dimension.
  void NoRows(const std::vector<int>& outputs, RunResult* result) const;

 private:
  Signature(SignatureInputs inputs, const Options& options, const RowRecord& record)
      : inputs_(std::move(inputs)),
        max_columns_(options.max_request_columns),
        record_(record),
        lists_(inputs_, record) {}

  // Sets `*outputs` to the positions, in the sorted aliases, of the outputs that a request asks
  // for. Returns INVALID_ARGUMENT for a filter with an unknown output or a repeated one.
  absl::Status SelectOutputs(const std::vector<std::string_view>& filter,
                             std::vector<int>* outputs) const;

  void AddOutput(const std::string& alias, const tensorflow::TensorInfo& info);

  const SignatureInputs inputs_;
  std::optional<SignatureInputs> as_sent_;
  RowTrials trials_;
  const int64_t max_columns_;
  const RowRecord record_;
  const ListColumns lists_;
  std::vector<const void*> tables_;
  Traits traits_;
  std::vector<std::string> output_aliases_;  // sorted
  std::vector<int> all_outputs_;
  std::vector<tensorflow::Tensor> no_rows_;  // each output with 0 rows
  std::vector<bool> rows_have_one_shape_;    // for each output
  absl::Status unfetchable_;  // returned by SelectOutputs() if an output is not a dense tensor
  std::unique_ptr<Callables> callables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SIGNATURE_H_
