#include "server/wire/reader.h"

#include <climits>

namespace colcast {

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

bool Reader::ReadLongVarint(uint64_t* value) {
  if (static_cast<size_t>(end_ - at_) >= kMaxVarintSize) {
    const uint8_t* next = ReadVarintUnchecked(at_, value);
    if (next == nullptr) return Fail("varint longer than 10 bytes");
    Step(next - at_);
    return true;
  }
  *value = 0;
  for (size_t i = 0; i < kMaxVarintSize; ++i) {
    if (done()) return Fail("varint goes past the end");
    const uint8_t byte = *at_;
    Step(1);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail("varint longer than 10 bytes");
}

// Tags and lengths may have at most five bytes, even if a longer varint encodes the same value.
bool Reader::ReadShortNumber(uint64_t* value, const char* too_long) {
  *value = 0;
  for (int i = 0; i < 5; ++i) {
    if (done()) return Fail("varint goes past the end");
    const uint8_t byte = *at_;
    Step(1);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail(too_long);
}

bool Reader::ReadLongTag(uint32_t* tag) {
  uint64_t value;
  if (!ReadShortNumber(&value, "tag longer than 5 bytes")) return false;
  *tag = static_cast<uint32_t>(value);
  return FieldNumberOf(*tag) != 0 || Fail("field number 0");
}

bool Reader::ReadLongLength(size_t* size) {
  uint64_t value;
  if (!ReadShortNumber(&value, "length longer than 5 bytes")) return false;
  *size = value;
  return value <= INT_MAX || Fail("length over 2 GB");
}

bool Reader::Skip(size_t size) {
  if (size > left()) return Fail("value goes past the end");
  Advance(size);
  return true;
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
      return Fail("end of a group that did not start");
  }
  return Fail("unknown wire type");
}

bool Reader::SkipGroup(uint32_t field_number, int depth) {
  if (depth < 0) return Fail("nested too deep");
  const uint32_t end_tag = MakeTag(field_number, kEndGroupType);
  while (!done()) {
    uint32_t tag;
    if (!ReadTag(&tag)) return false;
    if (tag == end_tag) return true;
    if (!SkipValue(tag, depth)) return false;
  }
  return Fail("group without an end");
}

bool CountVarints(const Bytes& body, int64_t* count) {
  VarintCounter counter;
  bool ok = true;
  body.ForEachPiece([&](const uint8_t* data, size_t size) { ok = ok && counter.Add(data, size); });
  *count = counter.count();
  return ok && counter.complete();
}

}  // namespace colcast
