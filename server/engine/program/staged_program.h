// Runs a late signature as stages: computes the states of users, items and further domains, then
// scores the candidates. Cached states are not computed again (docs/stages.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/last_stage.h"
#include "server/engine/program/program.h"
#include "server/engine/program/stage.h"
#include "server/engine/signature.h"
#include "server/states/state_cache.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

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

  // Accepts every prefetch, every batch with an index, and batches without one if they have
  // candidates.
  bool Accepts(const Batch& batch) const override;
  std::vector<int> own_lengths() const override { return own_lengths_; }

  // Positions of the lengths of lists that must be equally long in requests that run together:
  // those read by the last stage, and those of states as wide as a list.
  const std::vector<int>& joined_lengths() const { return joined_lengths_; }

  // Runs each stage once for rows of one length (length_groups.h). The last stage runs once, or
  // once per user if it takes a single one or reads lists that are not equally long. Returns false
  // for a batch without an index if no state is found and none is worth caching, and for one whose
  // rows cannot be grouped by length.
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  // Whether a received request is a prefetch: user columns but no candidates, with all other
  // columns missing or without rows.
  bool IsPrefetch(const ReceivedRequest& received) const;

  // Plans a prefetch, for which Run() computes and caches the user's state and returns outputs
  // without rows. Returns INVALID_ARGUMENT from SignatureInputs::Plan(), and for several users.
  absl::Status PlanPrefetch(const ReceivedRequest& received, Batch* batch) const;

  // Sets `*states` to the states of the batch's users. Computes and caches those that are missing.
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states);

  // Whether rows of several requests may run together in every stage.
  bool have_independent_rows() const { return last_.signature().record().independent; }

  // Whether a request with several users computes each user once and scores all candidates in one
  // run.
  bool computes_users_once() const { return many_users_per_run_; }

  // Statistics of the stores of all domains.
  std::vector<states::StoreStats> stats() const;

 private:
  struct Domain {
    Domain(const Signature* signature, std::string name, states::StateCache* memory,
           int64_t window_rows)
        : stage(signature, std::move(name), memory, window_rows) {}
    Stage stage;
    // For each input of the stage's signature, its position in the late signature.
    std::vector<int> inputs;
    // Number of consecutive requests whose rows hardly repeated.
    std::atomic<int64_t> unrepeated{0};
  };
  static constexpr size_t kItem = 1;  // index in domains_

  // Reused by each thread. Both members are per domain.
  struct Scratch {
    std::deque<Stage::Rows> rows;
    // For each domain, the index into merged rows; empty if none repeat.
    std::vector<std::vector<int64_t>> merged;
  };

  StagedProgram(const StageSignatures& signatures, const Domains& domains,
                const StateCaches& memories);
  static Scratch* ThreadScratch();
  bool Connect();
  void SetLengths();
  bool Begin(const Batch& batch, Scratch* scratch) const;
  void End(Scratch* scratch) const;
  absl::Status RunUsers(const Batch& batch, RunResult* result);
  absl::Status Prefetch(const Batch& batch, std::vector<tensorflow::Tensor>* states);
  bool Look(const Batch& batch, Scratch* scratch, bool* gain);
  bool LookForUsers(Stage::Rows* rows, bool* gain);
  bool LookForRows(size_t domain, const Batch& batch, Scratch* scratch, bool* gain);
  absl::Status Score(const Batch& batch, Scratch* scratch, RunResult* result);
  absl::Status SetContext(const Batch& batch, LastStage::Feeds* feeds) const;
  void SetIndices(const Batch& batch, const Scratch& scratch, LastStage::Feeds* feeds) const;

  const Signature* const late_;
  const Domains* const columns_;
  LastStage last_;
  const bool many_users_per_run_;
  std::deque<Domain> domains_;
  std::vector<int> context_inputs_;  // the late signature's inputs that belong to no domain
  std::vector<bool> is_user_input_;  // by the late signature's input
  // Positions in the late signature.
  std::vector<int> own_lengths_;
  std::vector<int> joined_lengths_;
  std::vector<int> last_lengths_;  // of the last stage
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
