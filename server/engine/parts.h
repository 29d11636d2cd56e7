// A late signature run as three parts: the user's states, the items' states, and the scores of the
// pairs. States that a store has are not computed again (docs/states.md).
#ifndef COLCAST_SERVER_ENGINE_PARTS_H_
#define COLCAST_SERVER_ENGINE_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/known_pairs.h"
#include "server/engine/pair_part.h"
#include "server/engine/part.h"
#include "server/engine/signature_runner.h"
#include "server/states/memory.h"
#include "server/states/store.h"
#include "server/states/store_stats.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// The signatures NAME_late, NAME_user, NAME_item and NAME_pair of one model.
struct PartSignatures {
  const SignatureRunner* late = nullptr;
  const SignatureRunner* user = nullptr;
  const SignatureRunner* item = nullptr;
  const SignatureRunner* pair = nullptr;
  // Whether the pair part takes several users in one run.
  bool many_users_per_run = false;
  // Columns of the late one that are padded behind as many values as NAME/length says.
  std::vector<std::string> padded_columns;
};

// Where states are kept; null where they are not.
struct StateMemories {
  std::unique_ptr<states::Memory> user;
  std::unique_ptr<states::Memory> item;
  std::unique_ptr<states::Memory> pair;
};

class Parts {
 public:
  // Null if the signatures do not fit together: then the late one runs as a whole. All must outlive
  // the parts.
  static std::unique_ptr<Parts> Create(const PartSignatures& signatures,
                                       const StateMemories& memories);

  // Runs a request to the late signature that has been planned (`plan.sources` and `plan.plan`).
  // False if nothing is to be gained, or if something is wrong with it: the late signature is to
  // run, and to say what. `outputs` are positions in the sorted aliases.
  bool Run(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
           RunResult* result);

  // Whether a request has user columns but no candidate: all other columns are missing or have no
  // rows. `received` and `positions` as for the late signature's SignatureInputs::Plan().
  bool IsPrefetch(absl::Span<const ReceivedInput> received, absl::Span<const int> positions) const;

  // Makes sure that such a request's user is known; its outputs have no rows. INVALID_ARGUMENT as
  // SignatureInputs::Plan() has it.
  absl::Status Prefetch(absl::Span<const ReceivedInput> received, const std::vector<int>& outputs,
                        RunResult* result);

  // Several users and their candidates, as they are scored together. Columns are by the late
  // signature's input; null: left out.
  struct Batch {
    int64_t users = 0;
    int64_t rows = 0;
    std::vector<const WireColumn*> columns;
    tensorflow::Tensor row_to_user;           // int64 [rows], each in [0, users)
    std::vector<tensorflow::Tensor> context;  // by context_inputs()
    // Where they are known already: users' columns are not looked at.
    const std::vector<tensorflow::Tensor>* user_states = nullptr;
  };

  // Positions of the late signature's inputs that belong to neither users nor items.
  const std::vector<int>& context_inputs() const { return context_inputs_; }

  // Users stacked and items joined: each part runs once, the pair part once per user if it takes
  // one only. Fails where a signature does.
  absl::Status RunBatch(const Batch& batch, const std::vector<int>& outputs, RunResult* result);

  // Sets `*states` to what RunBatch() would compute for the batch's users: found or made, and kept.
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states);

  // Whether Run() looks for the outputs of pairs, which RunBatch() does not.
  bool keeps_pairs() const { return pairs_.store().on() && many_users_per_run_; }

  // Whether RunBatch() runs the pair part once for all users, so that it sees all rows together.
  bool takes_many_users_per_run() const { return many_users_per_run_; }

  // Of the users' and the items' store, and of that for pairs if there is one.
  std::vector<states::StoreStats> stats() const;

 private:
  Parts(const PartSignatures& signatures, const StateMemories& memories);
  bool Connect();
  bool FindPairs(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
                 Part::Rows* user, Part::Rows* item, KnownPairs::Rows* pairs);
  bool MakeContextKeys(const SignatureInputs::Scratch& plan, std::vector<states::Key>* keys) const;
  absl::Status RunRows(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
                       states::Store::Claim* claim, Part::Rows* user, Part::Rows* item,
                       RunResult* result);
  bool FindStates(Part::Rows* user, Part::Rows* item, states::Store::Claim* claim);
  absl::Status ItemStates(const Batch& batch, std::vector<tensorflow::Tensor>* states);

  const SignatureRunner* const late_;
  PairPart pair_;
  const bool many_users_per_run_;
  Part user_;
  Part item_;
  KnownPairs pairs_;
  std::vector<int> user_inputs_;     // of each input of the user's signature: the late one's
  std::vector<int> item_inputs_;     // the same of the items'
  std::vector<int> context_inputs_;  // the late signature's others
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PARTS_H_
