#include "server/wire/reader.h"

#include <climits>

namespace colcast {

Bytes::Bytes(const Slice* slices, size_t slice_count) {
  for (size_t i = 0; i < slice_count; ++i) size_ += slices[i].size;
  if (size_ == 0) return;
  while (slices->size == 0) ++slices;
  head_ = slices->data;
  head_size_ = slices->size;
  rest_ = slices + 1;
}

Bytes Bytes::SubAcross(size_t offset, size_t size) const {
  if (size == 0) return Bytes();
  if (offset < head_size_) return Bytes(head_ + offset, head_size_ - offset, size, rest_);
  offset -= head_size_;
  const Slice* slice = rest_;
  for (; offset >= slice->size; ++slice) offset -= slice->size;
  return Bytes(slice->data + offset, std::min(size, slice->size - offset), size, slice + 1);
}

void Bytes::CopyRest(uint8_t* out) const {
  size_t left = size_ - head_size_;
  for (const Slice* slice = rest_; left > 0; ++slice) {
    const size_t piece = std::min(left, slice->size);
    if (piece > 0) std::memcpy(out, slice->data, piece);
    out += piece;
    left -= piece;
  }
}

bool IsValidUtf8(const Bytes& text) {
  return text.contiguous() ? IsValidUtf8(text.view())
                           : IsValidUtf8(std::string_view(text.ToString()));
}

namespace {

// A varint is too long if its tenth byte is not its last.
constexpr int kTooManyPending = kMaxVarintSize;

int CountLastBytes(uint64_t last_bytes) {
  return static_cast<int>(((last_bytes >> 7) * 0x0101010101010101) >> 56);
}

// Counts the varints in bytes received in slices.
struct VarintCounter {
  int64_t count = 0;
  int pending = 0;  // bytes of the unfinished varint

  // Returns false if some varint is longer than 10 bytes.
  bool Add(const uint8_t* data, size_t size) {
    const uint8_t* const end = data + size;
    for (; end - data >= 8; data += 8) {
      const uint64_t last_bytes = ~LoadEightBytes(data) & kContinuationBits;
      if (last_bytes == 0) {
        pending += 8;
        if (pending >= kTooManyPending) return false;
        continue;
      }
      const int leading = __builtin_ctzll(last_bytes) / 8;
      if (pending + leading >= kTooManyPending) return false;
      pending = __builtin_clzll(last_bytes) / 8;
      count += CountLastBytes(last_bytes);
    }
    for (; data != end; ++data) {
      if (*data < 0x80) {
        ++count;
        pending = 0;
      } else if (++pending >= kTooManyPending) {
        return false;
      }
    }
    return true;
  }
};

bool CountVarints(const Bytes& body, int64_t* count) {
  VarintCounter counter;
  bool ok = true;
  body.ForEachPiece([&](const uint8_t* data, size_t size) { ok = ok && counter.Add(data, size); });
  *count = counter.count;
  return ok && counter.pending == 0;
}

// The size of a value in bytes, or 1 for a varint, whose size varies.
constexpr size_t ValueSize(WireType type) {
  return type == kFixed32Type ? 4 : type == kFixed64Type ? 8 : 1;
}

}  // namespace

void Reader::AdvanceAcross(size_t size) {
  size_t in_slice = end_ - at_;
  while (size >= in_slice && beyond_ > 0) {
    size -= in_slice;
    in_slice = std::min(beyond_, rest_->size);
    at_ = rest_->data;
    end_ = at_ + in_slice;
    beyond_ -= in_slice;
    ++rest_;
  }
  at_ += size;
}

bool Reader::Fail(const char* reason, size_t offset) {
  if (malformed_ == nullptr) return false;
  malformed_->reason = reason;
  malformed_->offset = offset;
  malformed_->fields.clear();
  return false;
}

void Reader::AddField(uint32_t tag) {
  if (malformed_ == nullptr) return;
  const std::string number = std::to_string(FieldNumberOf(tag));
  std::string& fields = malformed_->fields;
  fields = fields.empty() ? number : number + '.' + fields;
}

Status Malformed::ToStatus(const char* message_name, size_t message_size,
                           const std::string& where) const {
  return InvalidArgument("malformed ", message_name, ": ", where, reason, " (",
                         fields.empty() ? "" : "field " + fields + ", ", "byte ", offset, " of ",
                         message_size, ")");
}

bool Reader::ReadLongVarint(uint64_t* value) {
  if (static_cast<size_t>(end_ - at_) >= kMaxVarintSize) {
    const uint8_t* next = ReadVarintUnchecked(at_, value);
    if (next == nullptr) return Fail("varint longer than 10 bytes", offset());
    Step(next - at_);
    return true;
  }
  const size_t start = offset();
  *value = 0;
  for (size_t i = 0; i < kMaxVarintSize; ++i) {
    if (done()) return Fail("varint goes past the end", start);
    const uint8_t byte = *at_;
    Step(1);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail("varint longer than 10 bytes", start);
}

// Refuses tags and lengths of more than five bytes, even if they encode a small number.
bool Reader::ReadShortNumber(uint64_t* value, const char* too_long) {
  const size_t start = offset();
  *value = 0;
  for (int i = 0; i < 5; ++i) {
    if (done()) return Fail("varint goes past the end", start);
    const uint8_t byte = *at_;
    Step(1);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail(too_long, start);
}

bool Reader::ReadLongTag(uint32_t* tag) {
  const size_t start = offset();
  uint64_t value;
  if (!ReadShortNumber(&value, "tag longer than 5 bytes")) return false;
  *tag = static_cast<uint32_t>(value);
  return FieldNumberOf(*tag) != 0 || Fail("field number 0", start);
}

bool Reader::ReadLongLength(size_t* size) {
  const size_t start = offset();
  uint64_t value;
  if (!ReadShortNumber(&value, "length longer than 5 bytes")) return false;
  *size = value;
  return value <= INT_MAX || Fail("length over 2 GB", start);
}

bool Reader::ReadPacked(WireType type, Bytes* body, int64_t* count) {
  if (!ReadBytes(body)) return false;
  if (CountPacked(type, *body, count)) return true;
  const size_t size = ValueSize(type);
  const std::string reason = size == 1 ? "a packed varint is cut off or longer than 10 bytes"
                                       : "the packed field's " + std::to_string(body->size()) +
                                             " bytes are not a multiple of " + std::to_string(size);
  return Fail(reason.c_str(), offset() - body->size());
}

bool Reader::SkipValue(uint32_t tag, int depth) {
  uint64_t ignored_number;
  Bytes ignored_bytes;
  switch (WireTypeOf(tag)) {
    case kVarintType:
      return ReadVarint(&ignored_number);
    case kFixed64Type:
      return Skip(8);
    case kLengthType:
      return ReadBytes(&ignored_bytes);
    case kStartGroupType:
      return SkipGroup(FieldNumberOf(tag), depth - 1);
    case kFixed32Type:
      return Skip(4);
    case kEndGroupType:
      return Fail("end of a group that did not start", offset());
  }
  return Fail("unknown wire type", offset());
}

bool Reader::SkipGroup(uint32_t field_number, int depth) {
  if (depth < 0) return Fail("nested too deep", offset());
  const uint32_t end_tag = MakeTag(field_number, kEndGroupType);
  while (!done()) {
    uint32_t tag;
    if (!ReadTag(&tag)) return false;
    if (tag == end_tag) return true;
    if (!SkipValue(tag, depth)) return false;
  }
  return Fail("group without an end", offset());
}

bool CountPacked(WireType type, const Bytes& body, int64_t* count) {
  if (type == kVarintType) return CountVarints(body, count);
  *count = static_cast<int64_t>(body.size() / ValueSize(type));
  return body.size() % ValueSize(type) == 0;
}

}  // namespace colcast
