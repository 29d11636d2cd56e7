// What is computed for one domain's rows: the signature that computes their states, and the store
// in which they are looked for first.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_STAGE_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_STAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/program/row_hash.h"
#include "server/engine/program/state_rows.h"
#include "server/engine/signature.h"
#include "server/engine/wire_column.h"
#include "server/states/state_store.h"
#include "server/states/stored_keys.h"
#include "serving_patches/signature_inputs.h"

namespace colcast::engine {

class Stage {
 public:
  // One run's columns of the domain, and what was found of them. A thread keeps one and uses it
  // again; the columns must outlive its use.
  struct Rows {
    int64_t count = 0;
    std::vector<const WireColumn*> columns;  // by the signature's input; null: left out

    // The rows whose states are wanted, rising; empty: all.
    std::vector<int64_t> wanted;

    // The outputs that make a state, rising; null: all. What was computed for others is not found.
    const std::vector<int>* outputs = nullptr;

    // Filled by Find(). The states of rows without keys are computed and not kept.
    std::vector<states::Key> keys;
    std::vector<states::StateRef> found;  // by row; none: not there

    // Implementation details follow.
    RowHash hash;
    std::vector<int64_t> missing;
    std::vector<int64_t> awaited;
    int64_t num_ended = 0;
    std::vector<int32_t> places;  // by row: where in `missing`, or -1
    SignatureInputs::Scratch inputs;
    std::vector<tensorflow::Tensor> feeds;
  };

  // `signature` must outlive the stage, `memory` too; without it nothing is kept. `stretch`: that
  // of states::ReuseEstimator.
  Stage(const Signature* signature, std::string name, states::StateCache* memory, int64_t stretch);

  const std::string& domain() const { return name_; }

  const Signature& signature() const { return *signature_; }
  states::StateStore& store() { return store_; }
  const states::StateStore& store() const { return store_; }
  states::StoreStats stats() const { return store_.stats(); }

  // Starts on `count` rows whose columns are to be set.
  void Begin(int64_t count, Rows* rows) const;

  // Sets the rows' keys. False if a value is malformed, or if lists on whose greatest length the
  // states depend have several: then a row's state is not its own, and there are none.
  bool MakeKeys(Rows* rows) const;

  // Looks all rows up, by keys that they have or are given; `num_found` says how many are there.
  // False if MakeKeys() is; then there are no keys. REQUIRES store().on().
  bool Find(Rows* rows, size_t* num_found);

  // Looks all rows up unless that has been given up. False if MakeKeys() is; then there are no
  // keys.
  // `*gain` becomes true if one was found or what is made is worth keeping; what is not
  // has no keys afterwards.
  bool LookFor(Rows* rows, bool* gain);

  // Leaves the first of rows that have the same key to be computed, and sets `*index` to its place
  // for each row. False, and nothing is changed, where too few repeat. REQUIRES keys.
  static bool MergeRepeated(Rows* rows, std::vector<int64_t>* index);

  // Makes the rows' keys and, while there is room, their states. False if none are kept.
  bool Fill(Rows* rows);

  // Sets `*states` to the domain's states, a row for each row wanted: those found, and those of the
  // others, which are computed in one run and kept under their keys. What another request computes
  // just now is waited for. An error where the signature fails, and FAILED_PRECONDITION where
  // states do not fit together; whoever asks runs the whole model then.
  absl::Status Complete(Rows* rows, std::vector<tensorflow::Tensor>* states);

 private:
  void CollectMissing(Rows* rows) const;
  const StoredRows* StoredRowsOf(const Rows& rows) const;
  void AddOutputs(Rows* rows) const;
  absl::Status Compute(Rows* rows, std::vector<tensorflow::Tensor>* made);
  absl::Status ComputeAndKeep(Rows* rows, std::vector<tensorflow::Tensor>* made);
  void Keep(const std::vector<tensorflow::Tensor>& made, Rows* rows);

  const Signature* const signature_;
  const std::string name_;
  states::StateStore store_;
  mutable states::StoredKeys stored_keys_;
  std::vector<int> inputs_;  // all of the signature's
  const bool rows_have_one_shape_;
  StateLayouts layouts_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STAGE_H_
