#include <algorithm>
#include <cstring>
#include <string>

#include "server/states/keys.h"
#include "server/wire/column.h"

namespace colcast::states {
namespace {

enum Kind : uint8_t { kAbsent, kShared, kRows, kPaddedRows };

constexpr size_t kBlockBytes = 16 << 10;
constexpr size_t kMostArenaBytes = 8 << 20;

// A string's fixed-size form in a key: its length, then the string itself or, if it is long, its
// keyed hash.
constexpr size_t kStringBytes = 24;
constexpr size_t kShortString = kStringBytes - sizeof(uint32_t);

// Copies `size` bytes, at most kShortString, and pads with zeros to kShortString. A memcpy() of
// variable size would cost more than everything else here.
inline __attribute__((always_inline)) void CopyShort(const uint8_t* from, size_t size,
                                                     uint8_t* out) {
  static_assert(kShortString == 20);
  std::memset(out, 0, kShortString);
  const auto copy = [&](auto word, size_t at) {
    std::memcpy(&word, from + at, sizeof(word));
    std::memcpy(out + at, &word, sizeof(word));
  };
  // Overlapping fixed-size copies handle every size in between.
  if (size >= 16) {
    copy(uint64_t{}, 0);
    copy(uint64_t{}, 8);
    copy(uint32_t{}, size - sizeof(uint32_t));
  } else if (size >= 8) {
    copy(uint64_t{}, 0);
    copy(uint64_t{}, size - sizeof(uint64_t));
  } else if (size >= 4) {
    copy(uint32_t{}, 0);
    copy(uint32_t{}, size - sizeof(uint32_t));
  } else {
    for (size_t i = 0; i < size; ++i) out[i] = from[i];
  }
}

class StringSlots final : public StringVisitor {
 public:
  StringSlots(const KeyHash& hash, uint8_t* out) : hash_(hash), out_(out) {}

  void Set(int64_t index, const Bytes& value) override {
    uint8_t* const slot = out_ + index * kStringBytes;
    const auto length = static_cast<uint32_t>(value.size());
    std::memcpy(slot, &length, sizeof(length));
    uint8_t* const rest = slot + sizeof(length);
    if (!value.contiguous()) {
      const std::string copy = value.ToString();
      return SetRest(reinterpret_cast<const uint8_t*>(copy.data()), copy.size(), rest);
    }
    SetRest(value.data(), value.size(), rest);
  }

 private:
  void SetRest(const uint8_t* text, size_t size, uint8_t* out) {
    if (size <= kShortString) return CopyShort(text, size, out);
    const Key key = hash_(text, size);
    std::memset(out, 0, kShortString);
    std::memcpy(out, &key.high, sizeof(key.high));
    std::memcpy(out + sizeof(key.high), &key.low, sizeof(key.low));
  }

  const KeyHash& hash_;
  uint8_t* const out_;
};

// The elements in the message, if they are encoded there exactly as in memory; otherwise null.
const uint8_t* AsTheyLie(const Column& column, int64_t elements) {
  const ColumnValues& values = column.values;
  const Bytes& content = values.tensor_content;
  if (!content.empty()) {
    return column.dtype != DT_BOOL && content.contiguous() ? content.data() : nullptr;
  }
  const bool fixed = column.dtype == DT_FLOAT || column.dtype == DT_DOUBLE;
  const bool all = fixed && values.packed && values.count == elements;
  return all && values.payload.contiguous() ? values.payload.data() : nullptr;
}

template <size_t kBytes>
void CopyFixed(const uint8_t* from, int64_t rows, size_t stride, uint8_t* out) {
  for (int64_t i = 0; i < rows; ++i) std::memcpy(out + i * stride, from + i * kBytes, kBytes);
}

// Copies `rows` rows of `row_bytes` each to `out`, `stride` bytes apart.
void Spread(const uint8_t* from, size_t row_bytes, int64_t rows, size_t stride, uint8_t* out) {
  switch (row_bytes) {
    case 4:
      return CopyFixed<4>(from, rows, stride, out);
    case 8:
      return CopyFixed<8>(from, rows, stride, out);
    case kStringBytes:
      return CopyFixed<kStringBytes>(from, rows, stride, out);
    default:
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(out + i * stride, from + i * row_bytes, row_bytes);
      }
  }
}

}  // namespace

void RowKeys::Begin(int64_t rows, const KeyHash& hash) {
  rows_ = rows;
  hash_ = &hash;
  header_.clear();
  sources_.clear();
  hashed_.clear();
  if (arena_.size() > kMostArenaBytes) arena_ = std::vector<uint8_t>();
  if (block_.size() > kMostArenaBytes) block_ = std::vector<uint8_t>();
  arena_used_ = 0;
}

void RowKeys::AddAbsent() { header_.push_back(kAbsent); }

void RowKeys::AddHeader(uint8_t kind, const Column& column, size_t first_dim) {
  const uint32_t dims = static_cast<uint32_t>(column.dims.size() - first_dim);
  const size_t dims_bytes = dims * sizeof(int64_t);
  const size_t at = header_.size();
  header_.resize(at + sizeof(kind) + sizeof(column.dtype) + sizeof(dims) + dims_bytes);
  uint8_t* out = header_.data() + at;
  const auto add = [&out](const void* bytes, size_t size) {
    std::memcpy(out, bytes, size);
    out += size;
  };
  add(&kind, sizeof(kind));
  add(&column.dtype, sizeof(column.dtype));
  add(&dims, sizeof(dims));
  if (dims > 0) add(column.dims.data() + first_dim, dims_bytes);
}

void RowKeys::AddHeaderBytes(const Bytes& bytes) {
  const uint64_t size = bytes.size();
  const size_t at = header_.size();
  header_.resize(at + sizeof(size) + size);
  std::memcpy(header_.data() + at, &size, sizeof(size));
  bytes.CopyTo(header_.data() + at + sizeof(size));
}

void RowKeys::AddHeaderList(const std::vector<Bytes>& list) {
  const uint64_t count = list.size();
  AddHeaderBytes(Bytes(&count, sizeof(count)));
  for (const Bytes& bytes : list) AddHeaderBytes(bytes);
}

void RowKeys::AddShared(const Column& column) {
  AddHeader(kShared, column, 0);
  const ColumnValues& values = column.values;
  if (values.stored != nullptr) return AddStored(column);
  AddHeaderBytes(values.tensor_content);
  AddHeaderBytes(values.packed ? values.payload : Bytes());
  header_.push_back(values.packed);
  if (values.packed) return;
  AddHeaderList(values.messages);
  AddHeaderList(values.strings);
}

void RowKeys::AddStored(const Column& column) {
  int64_t elements = 0;
  if (!ElementCount(column, &elements).ok()) return;
  std::vector<uint8_t> bytes(elements * std::max(kStringBytes, ElementSize(column.dtype)));
  if (column.dtype == DT_STRING) {
    StringSlots slots(*hash_, bytes.data());
    column.values.stored->Visit(nullptr, &slots);
  } else {
    column.values.stored->Copy(nullptr, bytes.data());
  }
  AddHeaderBytes(Bytes(bytes.data(), bytes.size()));
}

uint8_t* RowKeys::Allocate(size_t bytes, Source* source) {
  source->offset = arena_used_;
  arena_used_ += bytes;
  if (arena_.size() < arena_used_) arena_.resize(std::max(arena_used_, 2 * arena_.size()));
  return arena_.data() + source->offset;
}

Status RowKeys::AddRows(const Column& column, int64_t elements, const int64_t* lengths) {
  const bool padded = lengths != nullptr;
  AddHeader(padded ? kPaddedRows : kRows, column, padded ? 2 : 1);
  Source source;
  if (rows_ > 0) {
    if (Status status = Read(column, elements, &source); !status.ok()) return status;
  }
  sources_.push_back(source);
  hashed_.push_back(padded ? WithoutPadding(source, column.dims[1], lengths) : source);
  return OkStatus();
}

Status RowKeys::Read(const Column& column, int64_t elements, Source* source) {
  if (column.dtype == DT_STRING) return AddStrings(column, elements, source);
  const size_t bytes = elements * ElementSize(column.dtype);
  source->row_bytes = bytes / rows_;
  source->message = AsTheyLie(column, elements);
  if (source->message != nullptr) return OkStatus();
  return CopyValues(column, elements, Allocate(bytes, source));
}

RowKeys::Source RowKeys::WithoutPadding(const Source& source, int64_t entries,
                                        const int64_t* lengths) {
  Source hashes;
  hashes.row_bytes = sizeof(Key);
  Allocate(rows_ * sizeof(Key), &hashes);
  const size_t entry_bytes = entries == 0 ? 0 : source.row_bytes / entries;
  for (int64_t row = 0; row < rows_; ++row) {
    const Key key =
        (*hash_)(source.data(arena_) + row * source.row_bytes, lengths[row] * entry_bytes);
    std::memcpy(arena_.data() + hashes.offset + row * sizeof(Key), &key, sizeof(Key));
  }
  return hashes;
}

Status RowKeys::AddStrings(const Column& column, int64_t elements, Source* source) {
  source->row_bytes = elements / rows_ * kStringBytes;
  StringSlots slots(*hash_, Allocate(elements * kStringBytes, source));
  return VisitStrings(column, elements, &slots);
}

void RowKeys::Finish(std::vector<Key>* keys) {
  keys->resize(rows_);
  const Key header = (*hash_)(header_.data(), header_.size());
  size_t stride = sizeof(header);
  for (const Source& source : hashed_) stride += source.row_bytes;
  const auto rows_at_once = static_cast<int64_t>(std::max<size_t>(1, kBlockBytes / stride));
  if (block_.size() < rows_at_once * stride) block_.resize(rows_at_once * stride);
  for (int64_t i = 0; i < rows_at_once; ++i) {
    std::memcpy(block_.data() + i * stride, &header, sizeof(header));
  }
  for (int64_t first = 0; first < rows_; first += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, rows_ - first);
    uint8_t* out = block_.data() + sizeof(header);
    for (const Source& source : hashed_) {
      Spread(source.data(arena_) + first * source.row_bytes, source.row_bytes, rows, stride, out);
      out += source.row_bytes;
    }
    for (int64_t i = 0; i < rows; ++i) {
      (*keys)[first + i] = (*hash_)(block_.data() + i * stride, stride);
    }
  }
}

}  // namespace colcast::states
