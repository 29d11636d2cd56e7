// Runs a late signature as stages: computes the states of users, items and further domains, then
// scores the candidates. Cached states are not computed again (docs/stages.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/programs.h"
#include "server/engine/program/stage.h"
#include "server/engine/signature.h"
#include "server/states/state_cache.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// The stage that scores candidates, from the states of every domain and the candidates' own
// columns.
class LastStage {
 public:
  // A domain as an input of this stage. Its inputs are named DOMAIN_state/0 and so on,
  // row_to_DOMAIN and DOMAIN_state/row. The last one must hold 0 to R - 1: if TF Serving
  // concatenates requests, the numbers repeat, and the graph fails instead of mixing users. Without
  // row_to_DOMAIN, as for items, candidate i reads row i.
  struct Domain {
    std::string name;
    std::vector<std::string> states;  // the sorted outputs of its stage
  };

  // The feeds of one run. `states` and `indices` have an element per domain.
  struct Feeds {
    // [R, ...] each, in the order of Domain::states.
    std::vector<std::vector<tensorflow::Tensor>> states;
    std::vector<tensorflow::Tensor> indices;  // int64 [N], each in [0, R)
    // In the order of the positions that Connect() returned.
    std::vector<tensorflow::Tensor> context;
    int64_t candidates = 0;  // N
  };

  // `signature` must outlive the stage.
  explicit LastStage(const Signature* signature) : signature_(signature) {}

  const Signature& signature() const { return *signature_; }

  // Maps each input to a state, an index or a column of the late signature, and sets `*context` to
  // the positions of those columns. Returns false if an input is none of these, or if no input
  // reads one of the states.
  bool Connect(absl::Span<const Domain> domains, const SignatureInputs& late,
               std::vector<int>* context);

  // Whether candidates read the domain's rows by an index.
  bool has_index(size_t domain) const { return has_index_[domain]; }

  // An index by which all `rows` candidates read row 0.
  static tensorflow::Tensor FirstRow(int64_t rows);

  absl::Status Run(const Feeds& feeds, const std::vector<int>& outputs, RunResult* result) const;

  // Like Run(), for a stage that takes only one row of the first domain: runs once for each row
  // that has candidates. REQUIRES at least one candidate.
  absl::Status RunByUser(const Feeds& feeds, const std::vector<int>& outputs,
                         RunResult* result) const;

 private:
  enum class Source : uint8_t { kState, kStateRow, kIndex, kContext };
  struct Place {
    Source source;
    size_t domain;
    int index;  // index into the states or the context columns
  };

  bool FindSource(const std::string& alias, absl::Span<const Domain> domains, Place* place);
  absl::Status Pick(absl::Span<const int64_t> rows, Feeds* feeds) const;

  const Signature* const signature_;
  std::vector<Place> places_;
  std::vector<bool> has_index_;  // per domain
};

// The signatures NAME_late, NAME_<domain> and NAME_pair of a model.
struct StageSignatures {
  const Signature* late = nullptr;
  // "user" first, then "item", then others.
  std::vector<std::pair<std::string, const Signature*>> domains;
  const Signature* pair = nullptr;
  // Whether the last stage takes several users in one run, according to the record.
  bool many_users_per_run = false;
};

// The state caches; null if caching is off. Domains other than the user share the items' cache.
struct StateCaches {
  std::unique_ptr<states::StateCache> user;
  std::unique_ptr<states::StateCache> item;
};

class StagedProgram final : public Program {
 public:
  // Returns null if the signatures do not fit together, or if some domain's rows are not recorded
  // as independent: the late signature then runs as a whole. All arguments must outlive the
  // program. `domains` are the late signature's; those with stages come first.
  static std::unique_ptr<StagedProgram> Create(const StageSignatures& signatures,
                                               const Domains& domains, const StateCaches& memories);

  std::string_view name() const override { return "stages"; }

  // Accepts every prefetch, every batch with an index, and every other batch with candidates.
  bool Accepts(const Batch& batch) const override;
  std::vector<int> own_lengths() const override { return own_lengths_; }
  bool has_independent_rows() const override { return last_.signature().record().independent; }

  // Positions of the length inputs whose maximum must be equal in requests that run together. They
  // belong to the lists that the last stage reads or that determine the width of a state.
  const std::vector<int>& joined_lengths() const { return joined_lengths_; }

  // Runs each stage once for rows of one length (length_groups.h). The last stage runs once, or
  // once per user if it takes only one user or reads lists of different lengths. Returns false if
  // rows cannot be grouped by length, or if the batch has no index, no state is found and none is
  // worth caching.
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  // Whether a received request is a prefetch: user columns but no candidates, with all other
  // columns missing or without rows.
  bool IsPrefetch(const ReceivedRequest& received) const;

  // Plans a prefetch, for which Run() computes and caches the user's state and returns outputs
  // without rows. Returns SignatureInputs::Plan()'s errors, and INVALID_ARGUMENT for several users.
  absl::Status PlanPrefetch(const ReceivedRequest& received, Batch* batch) const;

  // Sets `*states` to the states of the batch's users. Computes the missing ones, and caches them
  // for a prefetch or if users repeat.
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states);

  // Whether a request with several users computes each user once and scores all candidates in one
  // run.
  bool computes_users_once() const { return many_users_per_run_; }

  std::vector<states::StoreStats> stats() const override;

 private:
  static constexpr size_t kItem = 1;  // index in stages_

  using Scratch = std::deque<Stage::Rows>;  // per domain; reused by each thread

  StagedProgram(const StageSignatures& signatures, const Domains& domains,
                const StateCaches& memories);
  static Scratch* ThreadScratch();
  bool Connect();
  void SetLengths();
  bool Begin(const Batch& batch, Scratch* scratch) const;
  static void End(Scratch* scratch);
  absl::Status RunUsers(const Batch& batch, RunResult* result);
  bool Look(const Batch& batch, Scratch* scratch, bool* gain);
  bool LookForUsers(const Batch& batch, Stage::Rows* rows, bool* gain);
  bool LookForRows(size_t domain, const Batch& batch, Scratch* scratch, bool* gain);
  absl::Status Score(const Batch& batch, Scratch* scratch, RunResult* result);
  absl::Status SetContext(const Batch& batch, LastStage::Feeds* feeds) const;
  void SetIndices(const Batch& batch, const Scratch& scratch, LastStage::Feeds* feeds) const;

  const Signature* const late_;
  const Domains* const columns_;
  LastStage last_;
  const bool many_users_per_run_;
  std::deque<Stage> stages_;         // per domain
  std::vector<int> context_inputs_;  // the late signature's inputs that belong to no domain
  std::vector<bool> is_user_input_;  // per input of the late signature
  // Positions in the late signature.
  std::vector<int> own_lengths_;
  std::vector<int> joined_lengths_;
  std::vector<int> last_lengths_;  // of the last stage
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
