#include "server/tables/overlay.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "server/wire/data_type.h"

namespace colcast::tables {
namespace {

constexpr int kBits = 64;

// A new layer absorbs an older layer that has at most this many times as many rows.
constexpr size_t kMergeTimes = 2;

uint64_t BitOf(int64_t id) { return uint64_t{1} << (id % kBits); }

// Overlays have 32-bit row indices.
constexpr int64_t kMostRows = int64_t{1} << 30;

}  // namespace

struct Overlay::Layer {
  size_t SlotOf(int64_t id) const {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    return static_cast<uint64_t>(id) * kGolden >> shift;
  }
  // Replaces an id with its row's position. Returns false if the layer does not have the row.
  bool Find(int64_t* id) const {
    for (size_t slot = SlotOf(*id);; slot = (slot + 1) & (slots.size() - 1)) {
      if (slots[slot] == 0) return false;
      if (ids[slots[slot] - 1] != *id) continue;
      *id = first + slots[slot] - 1;
      return true;
    }
  }

  std::vector<int64_t> ids;
  int shift = 0;
  std::vector<uint32_t> slots;  // open addressing: 1 + the index in `ids`; 0 if free
  std::unique_ptr<char[]> bytes;
  int64_t first = 0;  // position of its first row relative to the table, in rows
};

int64_t Overlay::rows() const {
  int64_t rows = 0;
  for (const auto& layer : layers_) rows += static_cast<int64_t>(layer->ids.size());
  return rows;
}

int64_t Overlay::bytes() const {
  size_t bytes = changed_ == nullptr ? 0 : changed_->size() * sizeof(uint64_t);
  for (const auto& layer : layers_) {
    bytes += layer->ids.size() * (row_bytes_ + sizeof(int64_t));
    bytes += layer->slots.size() * sizeof(uint32_t);
  }
  return static_cast<int64_t>(bytes);
}

std::shared_ptr<const Overlay::Layer> Overlay::MakeLayer(const Rows& rows) const {
  auto made = std::make_shared<Layer>();
  int bits = 1;
  while ((size_t{1} << bits) < 2 * rows.size()) ++bits;
  made->shift = kBits - bits;
  made->slots.resize(size_t{1} << bits);
  made->ids.reserve(rows.size());
  // The distance from the table must be a whole number of rows, so one extra row leaves room to
  // align the first row.
  made->bytes.reset(new char[(rows.size() + 1) * row_bytes_]);
  const auto apart =
      reinterpret_cast<intptr_t>(made->bytes.get()) - reinterpret_cast<intptr_t>(table_);
  const auto width = static_cast<intptr_t>(row_bytes_);
  made->first = apart / width + (apart > 0 ? 1 : 0);
  char* to = made->bytes.get() + (made->first * width - apart);
  for (const auto& [id, row] : rows) {
    made->ids.push_back(id);
    size_t slot = made->SlotOf(id);
    while (made->slots[slot] != 0) slot = (slot + 1) & (made->slots.size() - 1);
    made->slots[slot] = static_cast<uint32_t>(made->ids.size());
    std::memcpy(to, row, row_bytes_);
    to += row_bytes_;
  }
  return made;
}

Overlay::Rows Overlay::RowsOf(const Layer& layer) const {
  Rows rows;
  rows.reserve(layer.ids.size());
  const char* row = table_ + layer.first * static_cast<intptr_t>(row_bytes_);
  for (const int64_t id : layer.ids) {
    rows.emplace_back(id, row);
    row += row_bytes_;
  }
  return rows;
}

std::shared_ptr<const Overlay> Overlay::With(Span<int64_t> ids, const char* rows,
                                             int64_t sequence) const {
  auto made = std::make_shared<Overlay>(*this);
  made->sequence_ = sequence;
  Rows all;
  for (const int64_t id : ids) {
    all.emplace_back(id, rows);
    rows += row_bytes_;
  }
  while (!made->layers_.empty() && made->layers_.back()->ids.size() <= kMergeTimes * all.size()) {
    const Rows older = RowsOf(*made->layers_.back());  // kept alive by this overlay
    Rows merged;
    std::set_union(all.begin(), all.end(), older.begin(), older.end(), std::back_inserter(merged),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
    all = std::move(merged);
    made->layers_.pop_back();
  }
  made->layers_.push_back(MakeLayer(all));
  if (made->changed_ == nullptr) {
    made->changed_ = std::make_shared<std::vector<std::atomic<uint64_t>>>(table_rows_ / kBits + 1);
  }
  for (const int64_t id : ids) {
    (*made->changed_)[id / kBits].fetch_or(BitOf(id), std::memory_order_relaxed);
  }
  return made;
}

void Overlay::Redirect(int64_t* ids, size_t count) const {
  if (layers_.empty()) return;
  for (int64_t* id = ids; id < ids + count; ++id) {
    if (((*changed_)[*id / kBits].load(std::memory_order_relaxed) & BitOf(*id)) == 0) continue;
    std::any_of(layers_.rbegin(), layers_.rend(),
                [id](const auto& layer) { return layer->Find(id); });
  }
}

Status RowDelta::Read(Safetensors* file, RowDelta* delta) {
  const StoredTensor table = file->List("table", "U8"), ids = file->List("ids", "I64");
  const StoredTensor* const rows = file->Find("rows");
  if (rows == nullptr) file->Fail("there is no tensor \"rows\"");
  if (!file->ok()) return file->status();
  delta->table.assign(reinterpret_cast<const char*>(table.data), table.bytes);
  delta->ids = ids.values<int64_t>();
  for (size_t i = 0; i < delta->ids.size() && file->ok(); ++i) {
    const int64_t last = i == 0 ? -1 : delta->ids[i - 1];
    if (delta->ids[i] > last) continue;
    file->Fail("offset ", ids.offset + i * sizeof(int64_t), ": \"ids\"[", i, "] is ", delta->ids[i],
               ", expected more than ", last);
  }
  const auto count = static_cast<int64_t>(delta->ids.size());
  if (count == 0 || count > kMostRows) {
    file->Fail("header: ", count, " rows");
  } else if (rows->shape.empty() || rows->shape[0] != count || rows->bytes == 0) {
    file->Fail("tensor \"rows\" is ", rows->dtype, ShapeName(rows->shape),
               ", expected a row for each of ", count, " ids");
  }
  if (!file->ok()) return file->status();
  delta->dtype = rows->dtype;
  delta->shape = rows->shape;
  delta->rows = reinterpret_cast<const char*>(rows->data);
  delta->row_bytes = rows->bytes / count;
  return OkStatus();
}

}  // namespace colcast::tables
