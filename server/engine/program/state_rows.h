// From the tensors that a stage computed to the bytes that a store keeps, row by row, and back.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_STATE_ROWS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_STATE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/states/state.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// What the bytes of a state are: one row of each of these tensors, one after the other. Strings
// follow behind all numbers, each after its length.
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
  size_t bytes = 0;  // of the numbers
  bool has_strings = false;
};

// The layouts a stage has produced, by number. There is one as a rule; a model whose states follow
// the length of the user's history has one for every length.
class StateLayouts {
 public:
  // Nothing if a tensor has no rows or is of a dtype that is not kept, or if too many layouts are
  // known already.
  std::optional<uint32_t> NumberOf(absl::Span<const tensorflow::Tensor> tensors);

  // Whether tensors have a layout. REQUIRES a number that NumberOf() gave.
  bool Fits(uint32_t number, absl::Span<const tensorflow::Tensor> tensors) const;

  // Stays where it is. REQUIRES a number that NumberOf() gave.
  const StateLayout& at(uint32_t number) const;

 private:
  static constexpr size_t kMostLayouts = 1000;

  mutable std::shared_mutex mutex_;
  std::deque<StateLayout> layouts_;
};

// One row of tensors that have the layout.
states::StateRef MakeState(const StateLayout& layout, uint32_t number,
                           absl::Span<const tensorflow::Tensor> tensors, int64_t row);

// Sets `*tensors` to uninitialized ones of `rows` rows. RESOURCE_EXHAUSTED without memory.
absl::Status MakeTensors(const StateLayout& layout, int64_t rows,
                         std::vector<tensorflow::Tensor>* tensors);

// Writes the state to row `row` of tensors that have its layout.
void WriteState(const StateLayout& layout, const states::State& state, int64_t row,
                std::vector<tensorflow::Tensor>* tensors);

// Sets `*tensors` to one row for each of `rows`, or for all of `found` if that is empty: its state
// in `found` or, for those without, the next row of `made`. FAILED_PRECONDITION where states or
// tensors have different layouts. REQUIRES a state among them.
absl::Status LayOutStates(const StateLayouts& layouts, absl::Span<const states::StateRef> found,
                          absl::Span<const int64_t> rows, absl::Span<const tensorflow::Tensor> made,
                          std::vector<tensorflow::Tensor>* tensors);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STATE_ROWS_H_
