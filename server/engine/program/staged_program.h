// A late signature run as stages: the states of users, of items and of every further domain, then
// the scores of the candidates. States that a store has are not computed again (docs/states.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/program/batch.h"
#include "server/engine/program/last_stage.h"
#include "server/engine/program/pair_cache.h"
#include "server/engine/program/stage.h"
#include "server/engine/signature.h"
#include "server/states/state_cache.h"
#include "server/states/state_store.h"
#include "server/states/store_stats.h"
#include "serving_patches/signature_inputs.h"
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
  std::unique_ptr<states::StateCache> pair;
};

class StagedProgram {
 public:
  // Null if the signatures do not fit together, or unless every domain's rows are recorded as
  // independent: then the late one runs as a whole. All must outlive the program.
  static std::unique_ptr<StagedProgram> Create(const StageSignatures& signatures,
                                               const StateCaches& memories);

  // Runs a planned request to the late signature. False if nothing is to be gained, and an error if
  // a stage fails: the late signature is to run.
  absl::StatusOr<bool> Run(const PlannedRequest& planned, RunResult* result);

  // Whether a request to the late signature, as it was received, has user columns but no candidate:
  // all other columns are missing or have no rows.
  bool IsPrefetch(const PlannedRequest& received) const;

  // Makes sure that such a request's user is known; its outputs have no rows. INVALID_ARGUMENT as
  // SignatureInputs::Plan() has it.
  absl::Status Prefetch(const PlannedRequest& received, RunResult* result);

  // Model::FillStates() for columns as they were received.
  bool Fill(const PlannedRequest& received);

  // Makes the tensor of one of the late signature's inputs that belong to no domain.
  using MakeContext = absl::FunctionRef<absl::Status(int input, tensorflow::Tensor* feed)>;

  // A batch of the late signature. Each stage runs once, the last one once per user if it takes one
  // only. Fails where a signature does.
  absl::Status RunBatch(const Batch& batch, const std::vector<int>& outputs, MakeContext context,
                        RunResult* result);

  // Sets `*states` to what RunBatch() would compute for the batch's users: found or made, and kept.
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states);

  // Sets how many rows each domain with a stage has, by the batch's columns and candidates: one
  // user, an item for each candidate, and of others one or the same number. They are "user",
  // "item", and others, the first of the batch's domains.
  void SetRows(Batch* batch) const;

  // Whether Run() looks for the outputs of pairs, which RunBatch() does not.
  bool keeps_pairs() const { return pairs_.store().on() && have_independent_rows(); }

  // Whether rows of several requests may run together in all stages.
  bool have_independent_rows() const { return last_.signature().record().independent; }

  // Whether RunBatch() runs the last stage once for all users, so that it sees all rows together.
  bool takes_many_users_per_run() const { return many_users_per_run_; }

  // Of each domain's store, and of that for pairs if there is one.
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
    PairCache::Rows pairs;
    std::vector<int64_t> candidates;  // those to be scored, rising; empty: all
  };

  StagedProgram(const StageSignatures& signatures, const StateCaches& memories);
  static Scratch* ThreadScratch();
  bool Connect();
  void Begin(const Batch& batch, Scratch* scratch) const;
  void End(Scratch* scratch) const;
  Batch BatchOf(const PlannedRequest& planned) const;
  bool Look(const Batch& batch, Scratch* scratch, bool* gain);
  bool LookForUsers(Stage::Rows* rows, bool* gain);
  bool LookForRows(size_t domain, const Batch& batch, Scratch* scratch, bool* gain);
  bool FindPairs(const PlannedRequest& planned, const Batch& batch, Scratch* scratch);
  absl::Status Score(const Batch& batch, Scratch* scratch, const std::vector<int>& outputs,
                     MakeContext context, RunResult* result);
  absl::Status SetIndices(const Batch& batch, const Scratch& scratch, LastStage::Feeds* feeds);

  const Signature* const late_;
  LastStage last_;
  const bool many_users_per_run_;
  std::deque<Domain> domains_;
  PairCache pairs_;
  std::vector<int> context_inputs_;  // of the late signature, in no domain
  std::vector<bool> is_user_input_;  // by the late signature's input
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STAGED_PROGRAM_H_
