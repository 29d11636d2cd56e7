#include "server/engine/program/pair_cache.h"

#include <cstring>
#include <optional>
#include <utility>

namespace colcast::engine {

using states::Key;
using tensorflow::Tensor;

void PairCache::Find(int64_t count, absl::Span<const absl::Span<const Key>> keys,
                     const std::vector<int>& outputs, Rows* rows) {
  const size_t bytes_of_keys = keys.size() * sizeof(Key);
  std::vector<uint8_t> bytes(bytes_of_keys + outputs.size() * sizeof(int));
  if (!outputs.empty()) {
    std::memcpy(bytes.data() + bytes_of_keys, outputs.data(), outputs.size() * sizeof(int));
  }
  rows->keys.resize(count);
  for (int64_t row = 0; row < count; ++row) {
    uint8_t* at = bytes.data();
    for (const absl::Span<const Key> of_rows : keys) {
      std::memcpy(at, &of_rows[of_rows.size() == 1 ? 0 : row], sizeof(Key));
      at += sizeof(Key);
    }
    rows->keys[row] = store_.hash()(bytes.data(), bytes.size());
  }
  store_.FindAll(rows->keys, &rows->found);
  rows->missing.clear();
  for (int64_t row = 0; row < count; ++row) {
    if (!rows->found[row]) rows->missing.push_back(row);
  }
}

absl::Status PairCache::Join(const Rows& rows, std::vector<Tensor>* tensors) {
  const auto num_missing = static_cast<int64_t>(rows.missing.size());
  const std::optional<uint32_t> layout =
      num_missing > 0 ? layouts_.NumberOf(*tensors) : std::nullopt;
  if (layout && store_.reuse().good()) {
    for (int64_t i = 0; i < num_missing; ++i) {
      store_.Insert(rows.keys[rows.missing[i]],
                    MakeState(layouts_.at(*layout), *layout, *tensors, i));
    }
  } else {
    store_.counters().Add(&states::Counters::computed, num_missing);
  }
  if (rows.missing.size() == rows.found.size()) return absl::OkStatus();
  std::vector<Tensor> all;
  absl::Status status = LayOutStates(layouts_, rows.found, {}, *tensors, &all);
  *tensors = std::move(all);
  return status;
}

}  // namespace colcast::engine
