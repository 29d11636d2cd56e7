#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "server/engine/program/stage.h"
#include "server/engine/rows.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/tstring.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::tstring;

bool HasLayout(const StateLayout& layout, absl::Span<const Tensor> tensors) {
  if (layout.pieces.size() != tensors.size()) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StateLayout::Piece& piece = layout.pieces[i];
    if (piece.dtype != tensors[i].dtype() ||
        static_cast<int>(piece.inner_dims.size()) != tensors[i].dims() - 1) {
      return false;
    }
    for (size_t d = 0; d < piece.inner_dims.size(); ++d) {
      if (piece.inner_dims[d] != tensors[i].dim_size(d + 1)) return false;
    }
  }
  return true;
}

std::optional<StateLayout> LayoutOf(absl::Span<const Tensor> tensors) {
  StateLayout layout;
  for (const Tensor& tensor : tensors) {
    const bool is_string = tensor.dtype() == tensorflow::DT_STRING;
    if (tensor.dims() == 0) return std::nullopt;
    if (!is_string && !tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) return std::nullopt;
    StateLayout::Piece piece{tensor.dtype(), {}, RowElements(tensor), 0};
    for (int d = 1; d < tensor.dims(); ++d) piece.inner_dims.push_back(tensor.dim_size(d));
    if (!is_string) piece.bytes = piece.elements * tensorflow::DataTypeSize(tensor.dtype());
    layout.has_strings |= is_string;
    layout.bytes += piece.bytes;
    layout.pieces.push_back(std::move(piece));
  }
  return layout;
}

// The strings of one row; none for numbers.
absl::Span<tstring> StringsOf(const StateLayout::Piece& piece, const Tensor& tensor, int64_t row) {
  if (piece.dtype != tensorflow::DT_STRING) return {};
  const auto elements = static_cast<size_t>(piece.elements);
  return {static_cast<tstring*>(tensor.data()) + row * elements, elements};
}

constexpr size_t kAhead = 4;

void Prefetch(const states::State* state) {
  constexpr size_t kLine = 64;
  constexpr size_t kMostBytes = 8 * kLine;  // beyond this, the CPU's own prefetcher takes over
  if (state == nullptr) return;
  const size_t bytes = std::min(state->size(), kMostBytes);
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(state->data() + at);
}

}  // namespace

std::optional<uint32_t> StateLayouts::NumberOf(absl::Span<const Tensor> tensors) {
  const auto find = [&]() -> std::optional<uint32_t> {
    for (size_t i = 0; i < layouts_.size(); ++i) {
      if (HasLayout(layouts_[i], tensors)) return i;
    }
    return std::nullopt;
  };
  {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    if (const auto number = find()) return number;
  }
  std::optional<StateLayout> layout = LayoutOf(tensors);
  if (!layout) return std::nullopt;
  std::unique_lock<std::shared_mutex> lock(mutex_);
  if (const auto number = find()) return number;
  if (layouts_.size() == kMostLayouts) return std::nullopt;
  layouts_.push_back(*std::move(layout));
  return layouts_.size() - 1;
}

bool StateLayouts::Fits(uint32_t number, absl::Span<const Tensor> tensors) const {
  return HasLayout(at(number), tensors);
}

const StateLayout& StateLayouts::at(uint32_t number) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  return layouts_[number];
}

states::StateRef MakeState(const StateLayout& layout, uint32_t number,
                           absl::Span<const Tensor> tensors, int64_t row) {
  size_t bytes = layout.bytes;
  for (size_t i = 0; layout.has_strings && i < tensors.size(); ++i) {
    for (const tstring& text : StringsOf(layout.pieces[i], tensors[i], row)) {
      bytes += sizeof(uint32_t) + text.size();
    }
  }
  states::StateRef state = states::State::Make(bytes, number);
  uint8_t* out = state->data();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (const size_t piece = layout.pieces[i].bytes; piece > 0) {
      std::memcpy(out, static_cast<const char*>(tensors[i].data()) + row * piece, piece);
      out += piece;
      continue;
    }
    for (const tstring& text : StringsOf(layout.pieces[i], tensors[i], row)) {
      const auto size = static_cast<uint32_t>(text.size());
      std::memcpy(out, &size, sizeof(size));
      std::memcpy(out + sizeof(size), text.data(), size);
      out += sizeof(size) + size;
    }
  }
  return state;
}

namespace {

absl::Status MakeTensors(const StateLayout& layout, int64_t rows, std::vector<Tensor>* tensors) {
  tensors->clear();
  for (const StateLayout::Piece& piece : layout.pieces) {
    tensorflow::TensorShape shape;
    absl::Status status = shape.AddDimWithStatus(rows);
    for (const int64_t dim : piece.inner_dims) status.Update(shape.AddDimWithStatus(dim));
    if (status.ok()) status = MakeTensor(piece.dtype, shape, &tensors->emplace_back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void WriteState(const StateLayout& layout, const states::State& state, int64_t row,
                std::vector<Tensor>* tensors) {
  const uint8_t* in = state.data();
  for (size_t i = 0; i < layout.pieces.size(); ++i) {
    if (const size_t piece = layout.pieces[i].bytes; piece > 0) {
      std::memcpy(static_cast<char*>((*tensors)[i].data()) + row * piece, in, piece);
      in += piece;
      continue;
    }
    for (tstring& text : StringsOf(layout.pieces[i], (*tensors)[i], row)) {
      uint32_t size;
      std::memcpy(&size, in, sizeof(size));
      text.assign(reinterpret_cast<const char*>(in + sizeof(size)), size);
      in += sizeof(size) + size;
    }
  }
}

}  // namespace

absl::Status LayOutStates(const StateLayouts& layouts, absl::Span<const states::StateRef> found,
                          absl::Span<const int64_t> rows, absl::Span<const Tensor> made,
                          std::vector<Tensor>* tensors) {
  const size_t count = rows.empty() ? found.size() : rows.size();
  const auto state_of = [&](size_t i) { return found[rows.empty() ? i : rows[i]].get(); };
  const states::State* known = nullptr;
  bool fits = true;
  for (size_t i = 0; i < count; ++i) {
    const states::State* const state = state_of(i);
    if (state == nullptr) continue;
    fits &= known == nullptr || known->layout() == state->layout();
    known = state;
  }
  if (!fits || (!made.empty() && !layouts.Fits(known->layout(), made))) {
    return absl::FailedPreconditionError("states of different shapes cannot be laid out together");
  }
  const StateLayout& layout = layouts.at(known->layout());
  absl::Status status = MakeTensors(layout, static_cast<int64_t>(count), tensors);
  if (!status.ok()) return status;
  int64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    // States are scattered in memory, so the start of a state is prefetched a few rows ahead.
    if (i + kAhead < count) Prefetch(state_of(i + kAhead));
    if (const states::State* const state = state_of(i); state != nullptr) {
      WriteState(layout, *state, static_cast<int64_t>(i), tensors);
      continue;
    }
    for (size_t k = 0; k < made.size(); ++k) {
      CopyRow(made[k], next, static_cast<int64_t>(i), &(*tensors)[k]);
    }
    ++next;
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
