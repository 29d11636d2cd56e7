// One signature of a loaded model, resolved once: inputs to feed positions, outputs to fetch
// positions, and a prepared callable for each set of outputs that requests ask for.
#ifndef COLCAST_SERVER_ENGINE_SIGNATURE_RUNNER_H_
#define COLCAST_SERVER_ENGINE_SIGNATURE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/engine.h"
#include "server/engine/wire_column.h"
#include "server/wire/predict_request.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// The outputs of one run: `aliases[i]` names `tensors[i]`. The aliases belong to the runner or are
// among `names`.
struct RunResult {
  std::vector<std::string_view> aliases;
  std::vector<tensorflow::Tensor> tensors;
  std::deque<std::string> names;
  ExpansionStats expansion;
};

class KnownRows;
class Parts;
class SeveralUsers;

class SignatureRunner {
 public:
  // `session` must outlive the runner.
  static absl::StatusOr<std::unique_ptr<SignatureRunner>> Create(
      const tensorflow::SignatureDef& signature, tensorflow::Session* session,
      const Options& options);

  // Prepares the callable for all outputs, so that the first request does not pay for it.
  absl::Status Prepare() const;

  // From now on requests that send once what `exact` declares with one row are run by it: the
  // signature NAME_exact that the exporter put beside this one, equal to the last bit, with the
  // user's part of the graph at one row (docs/late.md). Nothing changes if it is none of this
  // signature: other inputs, outputs or dtypes. `exact` must outlive this runner.
  void UseExact(const std::string& name, const SignatureRunner& exact);

  // From now on requests are run by these, where they can: this signature's parts, and what reads
  // requests with several users. Both must outlive this runner.
  void UseParts(Parts* parts) { parts_ = parts; }
  void UseSeveralUsers(const SeveralUsers* several_users) { several_users_ = several_users; }

  // From now on what rows answered is looked for in `known_rows`, which must outlive this runner:
  // the model's record says that none depends on the others. REQUIRES a signature without parts.
  void UseKnownRows(KnownRows* known_rows) { known_rows_ = known_rows; }
  bool has_known_rows() const { return known_rows_ != nullptr; }

  // Where requests with different users run together because the operator asked for it, those that
  // send their users once run as `late` does: the same outputs within the export's tolerance, each
  // user computed once. It must outlive this runner.
  void JoinAs(const SignatureRunner* late) { joined_as_ = late; }
  const SignatureRunner* joined_as() const { return joined_as_; }

  // Whether some of its columns are the user's alone, and requests may have several users
  // (row_to_user).
  bool has_users() const { return several_users_ != nullptr && !takes_rows_only_; }

  // Whether requests may run together, and whether one may run in pieces. With parts or known rows,
  // rows do not depend on each other; otherwise the rules have to say so. `outputs` are those asked
  // for, positions in the sorted aliases.
  bool CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const;
  bool CanBeDivided(const BatchRules& rules, const std::vector<int>& outputs) const;

  // Whether it runs as three parts, for several users too.
  bool has_parts() const { return parts_ != nullptr && several_users_ != nullptr; }

  // To be called where a joined run's answer has other than its rows.
  void NeverJoin() const { never_join_ = true; }

  // Whether parts compute each of several users in one request once, and then all rows together.
  bool computes_users_once() const;

  // A request as the signature reads it, before any value is decoded. Made to be used again.
  struct Received {
    std::vector<WireColumn> columns;
    std::vector<ReceivedInput> inputs;
    SignatureInputs::Scratch plan;
  };

  // Finds what is wrong with a request's names, shapes and sizes, as Run() would. The request must
  // outlive what is received.
  absl::Status Plan(const DecodedRequest& request, Received* received) const;

  // What sending columns once did for a request that was planned.
  static ExpansionStats Summarize(const Received& received);

  // The user's part of a planned request, for RunOfUser(); then some of its candidates. Fail where
  // a part does. REQUIRES has_users() and has_parts().
  absl::Status ComputeUserStates(const Received& received,
                                 std::vector<tensorflow::Tensor>* states) const;
  absl::Status RunOfUser(const DecodedRequest& request,
                         const std::vector<tensorflow::Tensor>& user_states,
                         RunResult* result) const;

  // Sets the positions, in the sorted aliases, of the outputs that a request asks for.
  // INVALID_ARGUMENT as Run() has it.
  absl::Status SelectOutputs(const std::vector<std::string_view>& filter,
                             std::vector<int>* outputs) const;

  // RESOURCE_EXHAUSTED beyond a limit, INVALID_ARGUMENT as SignatureInputs::Build has it, and for
  // an output_filter that names an unknown output or one output twice.
  absl::Status Run(const DecodedRequest& request, RunResult* result) const;

  // The two halves of Run. RunFeeds is to be called on the runner that BuildFeeds returns: the
  // exact one or this. `outputs` are positions in the sorted aliases, rising; both runners have the
  // same.
  absl::StatusOr<const SignatureRunner*> BuildFeeds(const DecodedRequest& request,
                                                    std::vector<tensorflow::Tensor>* feeds,
                                                    ExpansionStats* stats) const;
  absl::Status RunFeeds(const std::vector<tensorflow::Tensor>& feeds,
                        const std::vector<int>& outputs, RunResult* result) const;
  const std::vector<int>& all_outputs() const { return all_outputs_; }

  // What the tensors of a request may take beyond what was sent.
  int64_t max_expanded_bytes() const { return options_.max_expanded_bytes; }

  // Sets the outputs as they are for no candidate: no rows, unknown dimensions 0.
  void NoRows(const std::vector<int>& outputs, RunResult* result) const;

  const SignatureInputs& inputs() const { return inputs_; }
  const std::vector<std::string>& output_aliases() const { return output_aliases_; }  // sorted

  // Whether rows of these outputs, positions in the sorted aliases, have the same shape whatever
  // the request.
  bool RowsHaveOneShape(const std::vector<int>& outputs) const;

 private:
  // What one set of outputs needs. Aliases of one tensor share a fetch.
  struct Callable {
    tensorflow::Session::CallableHandle handle = 0;
    std::vector<int> fetches;  // output i of the set is fetched tensor number fetches[i]
  };

  // What the exact signature takes for an input.
  enum class ExactInput : uint8_t {
    kAsHere,  // what this one does, which is not batched
    kOnce,    // one row
    kRows,    // any number of rows
  };

  SignatureRunner(SignatureInputs inputs, tensorflow::Session* session, const Options& options)
      : inputs_(std::move(inputs)), session_(session), options_(options) {}

  absl::Status Receive(const DecodedRequest& request, Received* received) const;
  absl::StatusOr<const SignatureRunner*> BuildReceived(Received* received,
                                                       std::vector<tensorflow::Tensor>* feeds,
                                                       ExpansionStats* stats) const;
  absl::Status RunWithStores(Received* received, const std::vector<int>& outputs,
                             std::vector<tensorflow::Tensor>* feeds, RunResult* result) const;
  bool FitsExact(absl::Span<const ReceivedInput> received, absl::Span<const int> positions) const;
  absl::StatusOr<const Callable*> FindOrMakeCallable(const std::vector<int>& outputs) const;
  absl::StatusOr<std::unique_ptr<Callable>> MakeCallable(const std::vector<int>& outputs) const;

  const SignatureInputs inputs_;
  tensorflow::Session* const session_;
  const Options options_;
  const SignatureRunner* exact_ = nullptr;
  std::vector<ExactInput> exact_inputs_;     // by position
  std::vector<std::string> output_aliases_;  // sorted
  std::vector<std::string> output_tensors_;  // the graph's name of each
  std::vector<tensorflow::Tensor> no_rows_;  // of each, without rows
  std::vector<bool> rows_have_one_shape_;    // of each
  Parts* parts_ = nullptr;
  KnownRows* known_rows_ = nullptr;
  const SeveralUsers* several_users_ = nullptr;
  const SignatureRunner* joined_as_ = nullptr;
  bool takes_rows_only_ = false;                  // every input is batched
  bool takes_rows_and_settings_ = false;          // or a scalar
  bool takes_rows_and_users_ = false;             // or has one row
  mutable std::atomic<bool> never_join_ = false;  // it was tried
  absl::Status unfetchable_;  // what Run answers if an output is no dense tensor
  std::vector<int> all_outputs_;
  mutable std::shared_mutex mutex_;
  mutable std::map<std::vector<int>, std::unique_ptr<Callable>> callables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SIGNATURE_RUNNER_H_
