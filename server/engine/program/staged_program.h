// A late signature run as stages: the states of users, of items and of every further domain, then
// the scores of the candidates. States that a store has are not computed again (docs/states.md).
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
#include "server/states/store_stats.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// The signatures NAME_late, NAME_<domain> and NAME_pair of one model.
struct StageSignatures {
  const Signature* late = nullptr;
  std::vector<std::pair<std::string, const Signature*>> domains;  // "user" first, then "item"
  const Signature* pair = nullptr;
  // Whether the last stage takes several users in one run, as recorded.
  bool many_users_per_run = false;
};

// Where states are kept; null where they are not. Those of further domains lie with the items'.
struct StateCaches {
  std::unique_ptr<states::StateCache> user;
  std::unique_ptr<states::StateCache> item;
};

class StagedProgram final : public Program {
 public:
  // Null if the signatures do not fit together, or unless every domain's rows are recorded as
  // independent: then the late one runs as a whole. All must outlive the program; `domains` are
  // those of the late signature, whose first ones have the stages.
  static std::unique_ptr<StagedProgram> Create(const StageSignatures& signatures,
                                               const Domains& domains, const StateCaches& memories);

  std::string_view name() const override { return "stages"; }

  // A batch without an index runs only if it has candidates, one with an index only if lists on
  // whose greatest length results depend have one in it.
  bool Accepts(const Batch& batch) const override;

  // Each stage runs once, the last one once per user if it takes one only. A batch without an index
  // gains nothing where no state is found and none is worth keeping.
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  // Whether a received request has user columns but no candidate: all other columns are missing or
  // have no rows.
  bool IsPrefetch(const ReceivedRequest& received) const;

  // Reads such a request, whose batch makes Run() compute and keep the user's state; its outputs
  // have no rows. INVALID_ARGUMENT as SignatureInputs::Plan() has it, and unless there is one user.
  absl::Status PlanPrefetch(const ReceivedRequest& received, Batch* batch) const;

  // Model::FillStates() for columns as they were received.
  bool Fill(const ReceivedRequest& received);

  // Sets `*states` to those of the batch's users: found or computed, and kept.
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states);

  // Whether rows of several requests may run together in all stages.
  bool have_independent_rows() const { return last_.signature().record().independent; }

  // Whether each of several users in one request is computed once, and all rows together then.
  bool computes_users_once() const {
    return many_users_per_run_ && late_->lists().own_lengths().empty();
  }

  // Of each domain's store.
  std::vector<states::StoreStats> stats() const;

  // Implementation details follow.
 private:
  struct Domain {
    Domain(const Signature* signature, std::string name, states::StateCache* memory,
           int64_t stretch)
        : stage(signature, std::move(name), memory, stretch) {}
    Stage stage;
    std::vector<int> inputs;             // of each input of the stage's signature: the late one's
    std::atomic<int64_t> unrepeated{0};  // times that rows of a request hardly ever repeated
  };
  static constexpr size_t kItem = 1;  // of the domains

  // What a thread keeps from one request to the next. Both by domain.
  struct Scratch {
    std::deque<Stage::Rows> rows;
    std::vector<std::vector<int64_t>> merged;  // the index of rows that repeat; empty: none does
  };

  StagedProgram(const StageSignatures& signatures, const Domains& domains,
                const StateCaches& memories);
  static Scratch* ThreadScratch();
  bool Connect();
  void Begin(const Batch& batch, Scratch* scratch) const;
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
  std::vector<int> context_inputs_;  // of the late signature, in no domain
  std::vector<bool> is_user_input_;  // by the late signature's input
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
