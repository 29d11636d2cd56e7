// The stage of one domain: the signature that computes states, their form in memory, and the store
// that caches them.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_STAGE_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_STAGE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/engine.h"
#include "server/engine/input.h"
#include "server/engine/program/length_groups.h"
#include "server/engine/signature.h"
#include "server/states/keys.h"
#include "server/states/state_cache.h"
#include "serving_patches/signature_inputs.h"

namespace colcast::engine {

// The layout of a state's bytes: one row of each tensor, in order. Each string is preceded by its
// length. MakeState() turns a row into a state, LayOutStates() turns states into tensors.
struct StateLayout {
  struct Piece {
    tensorflow::DataType dtype;
    Dims inner_dims;
    int64_t elements;
    size_t bytes;  // 0 for strings

    friend bool operator==(const Piece& a, const Piece& b) {
      return a.dtype == b.dtype && a.inner_dims == b.inner_dims;
    }
  };
  std::vector<Piece> pieces;
  size_t bytes = 0;  // bytes of all numbers
  bool has_strings = false;
};

// The layouts that a stage has produced, by number. Usually there is one; a model whose states grow
// with the user's history has one for every length.
class StateLayouts {
 public:
  // The number of the tensors' layout. Returns nullopt if a tensor has no rows or a dtype that
  // cannot be cached, or if there are too many layouts already.
  std::optional<uint32_t> NumberOf(absl::Span<const tensorflow::Tensor> tensors);

  // Whether the tensors have this layout. REQUIRES a number from NumberOf().
  bool Fits(uint32_t number, absl::Span<const tensorflow::Tensor> tensors) const;

  // The reference stays valid. REQUIRES a number from NumberOf().
  const StateLayout& at(uint32_t number) const;

 private:
  static constexpr size_t kMostLayouts = 1000;

  mutable std::shared_mutex mutex_;
  std::deque<StateLayout> layouts_;
};

states::StateRef MakeState(const StateLayout& layout, uint32_t number,
                           absl::Span<const tensorflow::Tensor> tensors, int64_t row);

// Sets `*tensors` to one row for each of `rows` (all of `found` if empty): the state in `found` or,
// where that is null, the next row of `made`. Returns FAILED_PRECONDITION if layouts differ.
// REQUIRES at least one state in `found`.
absl::Status LayOutStates(const StateLayouts& layouts, absl::Span<const states::StateRef> found,
                          absl::Span<const int64_t> rows, absl::Span<const tensorflow::Tensor> made,
                          std::vector<tensorflow::Tensor>* tensors);

// Set by Model::ObserveRuns().
inline thread_local RunObserver* thread_observer = nullptr;

// Reports a stage's run, from this object's construction to its destruction. Costs one branch if
// there is no observer.
class ObservedStage {
 public:
  ObservedStage(std::string_view stage, int64_t rows, int64_t hits) : observer_(thread_observer) {
    if (observer_ != nullptr) run_ = {stage, std::chrono::steady_clock::now(), {}, rows, hits};
  }
  ~ObservedStage() {
    if (observer_ == nullptr) return;
    run_.end = std::chrono::steady_clock::now();
    observer_->OnStage(run_);
  }
  ObservedStage(const ObservedStage&) = delete;
  ObservedStage& operator=(const ObservedStage&) = delete;

 private:
  RunObserver* const observer_;
  StageRun run_;
};

class Stage {
 public:
  // The rows of one run: their columns, and the states found. Each thread reuses one object.
  struct Rows {
    int64_t count = 0;
    absl::Span<const Input* const> columns;  // of the batch; null if left out

    // The rows whose states are needed, ascending; empty for all.
    std::vector<int64_t> wanted;
    // For each reader, the position of its row in `wanted`; empty unless repeated rows were merged.
    std::vector<int64_t> merged;

    // The outputs that form a state, ascending; null for all. States made from another set of
    // outputs are not found.
    const std::vector<int>* outputs = nullptr;

    // Set by Find(), the keys also by MakeKeys(). Rows without keys are computed, but not cached.
    std::vector<states::Key> keys;
    std::vector<states::StateRef> found;  // per row; null on a miss

    // Internal.
    states::RowKeys row_keys;
    bool hashed = false;               // `row_keys` holds the columns' values
    std::vector<int> columns_in_keys;  // per column: its index in row_keys if it has rows, else -1
    std::vector<int64_t> lengths;
    LengthGroups groups;
    bool grouped = true;  // false if the rows' lists could not be grouped
    std::vector<int64_t> running;
    std::vector<int64_t> missing;
    std::vector<int64_t> awaited;
    int64_t num_ended = 0;
    std::vector<int32_t> places;  // per row: its position in `missing`, or -1
    std::vector<tensorflow::Tensor> feeds;
  };

  // `inputs[i]` is the position, in a batch, of the column of the signature's input i; if `inputs`
  // is empty, the position is always i. `signature` and `memory` must outlive the stage; null
  // `memory` turns caching off. `window_rows`: see states::ReuseEstimator.
  Stage(const Signature* signature, std::string name, std::vector<int> inputs,
        states::StateCache* memory, int64_t window_rows);

  const std::string& domain() const { return name_; }

  const Signature& signature() const { return *signature_; }
  const std::vector<int>& inputs() const { return inputs_; }
  states::StateStore& store() { return store_; }
  const states::StateStore& store() const { return store_; }
  states::StoreStats stats() const { return store_.stats(); }

  // Positions, in a batch, of the length inputs whose maximum affects states.
  const std::vector<int>& lengths() const { return lengths_; }

  // Whether rows have states of one shape, however long their lists are.
  bool rows_have_one_shape() const { return rows_have_one_shape_; }

  // Prepares for `count` rows of a batch's columns, which must stay valid until End(). Call
  // SetReaders() next.
  void Begin(int64_t count, absl::Span<const Input* const> columns, Rows* rows) const;
  // Drops the pointers to the request's columns and states, and frees all memory if the request was
  // large.
  static void End(Rows* rows);

  // Groups the rows by the longest lists of the requests that read them. Returns false if
  // LengthGroups::Set() does, or if the rows' states would differ in shape.
  bool SetReaders(const Readers& readers, Rows* rows) const;

  // Makes the rows' keys. Returns false, without keys, if a value is malformed, or if the rows'
  // lists could not be grouped.
  bool MakeKeys(Rows* rows) const;

  // Looks up all rows, making their keys if there are none, and sets `num_found` to the number of
  // hits. Returns false, without keys, if MakeKeys() does. REQUIRES store().on().
  bool Find(Rows* rows, size_t* num_found);

  // Looks up all rows, unless the estimator has given up on lookups. Returns false, without keys,
  // if MakeKeys() does. Sets `*gain` to true if a row was found or if new states are worth caching;
  // otherwise clears the keys.
  bool LookFor(Rows* rows, bool* gain);

  // Removes rows with equal keys: keeps the first of each in rows->wanted, and sets rows->merged to
  // each row's position there. Leaves both empty if too few rows repeat; after many such requests,
  // looks only at one in many. Returns false, without keys, if MakeKeys() does.
  bool MergeRepeated(Rows* rows);

  // Sets `*states` to the states of all wanted rows. Missing states are computed, in one run per
  // group of lengths, and cached under their keys, or awaited if another request is computing them.
  // Returns the signature's error, or FAILED_PRECONDITION if states have different layouts; the
  // caller then runs the whole model.
  absl::Status Complete(Rows* rows, std::vector<tensorflow::Tensor>* states);

 private:
  const Input* ColumnOf(const Rows& rows, size_t input) const {
    return rows.columns[inputs_.empty() ? input : inputs_[input]];
  }
  void CollectMissing(Rows* rows) const;
  bool HashRows(Rows* rows) const;
  const int64_t* LengthsOf(size_t input, absl::Span<const int64_t> dims, Rows* rows) const;
  const StoredRows* StoredRowsOf(const Rows& rows) const;
  void AddOutputs(Rows* rows) const;
  void AddMarks(Rows* rows) const;
  absl::Status Compute(Rows* rows, std::vector<tensorflow::Tensor>* made);
  absl::Status ComputeGroups(Rows* rows, std::vector<tensorflow::Tensor>* made);
  absl::Status RunRows(const std::vector<int64_t>& running, Rows* rows, RunResult* result);
  absl::Status ComputeAndKeep(Rows* rows, std::vector<tensorflow::Tensor>* made);
  void Keep(const std::vector<tensorflow::Tensor>& made, Rows* rows);

  const Signature* const signature_;
  const std::string name_;
  const std::vector<int> inputs_;
  states::StateStore store_;
  mutable states::StoredKeys stored_keys_;
  const bool rows_have_one_shape_;
  const std::vector<int> lengths_;
  StateLayouts layouts_;
  std::atomic<int64_t> unrepeated_{0};  // consecutive requests whose rows hardly repeated
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STAGE_H_
