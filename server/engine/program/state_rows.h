// Converts the tensors that a stage computed into states, row by row, and states back into tensors.
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
#include "server/states/state_cache.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// The layout of a state's bytes: one row of each tensor, in order. Strings come after all numbers,
// each preceded by its length.
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

// Sets `*tensors` to uninitialized tensors of `rows` rows. Returns RESOURCE_EXHAUSTED if memory
// runs out.
absl::Status MakeTensors(const StateLayout& layout, int64_t rows,
                         std::vector<tensorflow::Tensor>* tensors);

void WriteState(const StateLayout& layout, const states::State& state, int64_t row,
                std::vector<tensorflow::Tensor>* tensors);

// Sets `*tensors` to one row for each of `rows` (all of `found` if empty): the state in `found` or,
// where that is null, the next row of `made`. Returns FAILED_PRECONDITION if layouts differ.
// REQUIRES at least one state in `found`.
absl::Status LayOutStates(const StateLayouts& layouts, absl::Span<const states::StateRef> found,
                          absl::Span<const int64_t> rows, absl::Span<const tensorflow::Tensor> made,
                          std::vector<tensorflow::Tensor>* tensors);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_STATE_ROWS_H_
