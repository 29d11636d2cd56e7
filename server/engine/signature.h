// One signature of a loaded model and its callables. A Signature runs its own graph;
// server/engine/program/programs.h decides which graphs answer a request.
#ifndef COLCAST_SERVER_ENGINE_SIGNATURE_H_
#define COLCAST_SERVER_ENGINE_SIGNATURE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/engine/input.h"
#include "server/engine/lookup_errors.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/record/row_record.h"
#include "server/wire/predict_request.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"
#include "tsl/platform/threadpool.h"

namespace colcast::engine {

// A signature's prepared callables, one for each set of outputs that requests ask for.
//
// All methods may be called from any thread. Making a callable takes as long as hundreds of runs,
// so only requests for the same outputs wait for it.
class Callables {
 public:
  // The first kMost other sets of outputs that requests ask for get callables of their own, like
  // the set of all outputs. Requests for any further set run all outputs.
  static constexpr size_t kMost = 8;

  // `feeds` and `fetches` are tensor names in the graph. `session` must outlive this object.
  // `inter_op_parallelism`: see engine::Options.
  Callables(std::vector<std::string> feeds, std::vector<std::string> fetches,
            tensorflow::Session* session, int inter_op_parallelism);
  ~Callables();

  // Makes the callable of these outputs, given by position in `fetches`, unless it exists.
  absl::Status Prepare(const std::vector<int>& outputs);

  // Runs the graph with TensorFlow's floating-point settings, and sets `(*tensors)[i]` to the value
  // of `outputs[i]`. Returns DATA_LOSS if a mapped table changed before the run ended.
  absl::Status Run(const std::vector<tensorflow::Tensor>& feeds, const std::vector<int>& outputs,
                   std::vector<tensorflow::Tensor>* tensors);

 private:
  class Callable;

  tsl::thread::ThreadPool* Pool() const;
  Callable* FindOrAdd(const std::vector<int>& outputs);
  absl::Status Make(Callable* callable) const;

  const std::vector<std::string> feeds_;
  const std::vector<std::string> fetches_;
  tensorflow::Session* const session_;
  const int inter_op_parallelism_;
  const std::unique_ptr<Callable> all_;
  const tensorflow::core::RefCountPtr<MappedTables> mapped_;  // null if the session maps no table
  std::shared_mutex mutex_;  // guards the map, not the callables in it
  std::map<std::vector<int>, std::unique_ptr<Callable>> some_;
};

// The outputs of one run: `aliases[i]` names `tensors[i]`. The aliases point into the signature or
// into `names`.
struct RunResult {
  std::vector<std::string_view> aliases;
  std::vector<tensorflow::Tensor> tensors;
  std::list<std::string> names;  // unlike a deque, an empty list allocates nothing
  ExpansionStats expansion;
};

// The tensors of a run as Outputs: all rows, or the rows of one member of a batch.
class TensorOutputs final : public Outputs {
 public:
  explicit TensorOutputs(RunResult result);

  // Rows [first, first + rows) of every tensor, without copying. REQUIRES that all tensors have
  // them.
  TensorOutputs(std::shared_ptr<const RunResult> result, int64_t first, int64_t rows,
                const ExpansionStats& expansion);

  const std::vector<OutputColumn>& columns() const override { return columns_; }
  const ExpansionStats& expansion() const override { return expansion_; }

 private:
  void AddColumns();

  const std::shared_ptr<const RunResult> result_;
  const ExpansionStats expansion_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<OutputColumn> columns_;
};

// The list columns of a signature, as recorded by the model's export.
class ListColumns {
 public:
  // For a signature without list columns.
  ListColumns() = default;
  ListColumns(const SignatureInputs& inputs, const RowRecord& record);

  // The position of the input that holds this list's lengths; values beyond a row's length are not
  // read. -1 if there is none.
  int LengthsOf(size_t input) const { return lengths_.empty() ? -1 : lengths_[input]; }

  // Whether this input holds the lengths of a list.
  bool IsLengths(size_t input) const { return !lengths_.empty() && is_lengths_[input]; }

  // Positions of the length inputs whose maximum in a run affects the results.
  const std::vector<int>& own_lengths() const { return own_lengths_; }

 private:
  std::vector<int> lengths_;  // per input
  std::vector<bool> is_lengths_;
  std::vector<int> own_lengths_;
};

// A request as a signature receives it: its columns by position, and totals from one walk over
// them. The object can be reused; the request must outlive each use.
struct ReceivedRequest {
  // Set by Signature::Receive(). `outputs` are the requested ones, as ascending positions in the
  // sorted aliases.
  std::vector<int> outputs;
  std::vector<Input> inputs;          // in the request's order
  std::vector<int> positions;         // each input's position in the signature; -1 if unknown
  std::vector<const Input*> columns;  // per input of the signature; null if left out
  std::vector<ReceivedShape> shapes;  // per input of the signature
  int64_t most_rows = 1;              // of any input, at least 1
  bool has_setting = false;           // an input is a scalar
  bool has_unknown = false;           // an input is not in the signature
  bool may_lack_candidates = false;   // some input has no rows or was left out
  // The number of inputs sent with one row, and the bytes of their values.
  int64_t sent_once = 0;
  int64_t bytes_sent_once = 0;
  // Bytes of input tensors, and of their strings alone. Inputs sent with one row count as _once.
  double bytes_once = 0, bytes = 0;
  double text_bytes_once = 0, text_bytes = 0;

  // Applies the expansion rule for `with`, which may be the inputs of another signature with the
  // same names, and sets `plan`. Errors are those of SignatureInputs::Plan().
  absl::Status Plan(const SignatureInputs& with);
  ExpansionPlan plan;

  // rows(), OneRowInputs() and Expansion() REQUIRE a plan.
  int64_t rows() const { return plan.rows; }
  // The positions of the inputs that the plan repeats.
  std::vector<int> OneRowInputs(const SignatureInputs& inputs) const;
  ExpansionStats Expansion() const;

  // Adds an input, found at `position` in the signature.
  void Add(const Input& input, int position);
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

  // Prepares the callable for all outputs, so that the first request does not pay for it.
  absl::Status Prepare() const;

  // Sets how errors of lookups are explained. Call before the first run.
  void set_lookup_errors(LookupErrors errors) { lookup_errors_ = std::move(errors); }

  const SignatureInputs& inputs() const { return inputs_; }

  // The inputs, all to be passed as sent, of a signature whose one-row inputs are repeated only if
  // a trial shows the need (OneRowInputs::kByTrial). Null for other signatures.
  const SignatureInputs* as_sent() const { return as_sent_.has_value() ? &*as_sent_ : nullptr; }

  const std::vector<std::string>& output_aliases() const { return output_aliases_; }  // sorted
  const std::vector<int>& all_outputs() const { return all_outputs_; }
  const RowRecord& record() const { return record_; }
  const ListColumns& lists() const { return lists_; }
  const std::vector<const void*>& tables() const { return tables_; }

  struct Traits {
    // All traits but `runs_alone` hold for every input.
    bool takes_rows = false;
    bool takes_rows_or_settings = false;  // a setting is a scalar
    bool takes_rows_or_one_row = false;
    // Whether requests must not share runs, because an input row_to_<domain> counts from its own
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
  LookupErrors lookup_errors_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SIGNATURE_H_
