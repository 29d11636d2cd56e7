// A cursor over Bytes that reads protobuf's wire format, wherever the slices end.
#ifndef COLCAST_SERVER_WIRE_READER_H_
#define COLCAST_SERVER_WIRE_READER_H_

#include <cstddef>
#include <cstdint>

#include "server/wire/bytes.h"
#include "server/wire/varint.h"

namespace colcast {

enum WireType : uint32_t {
  kVarintType = 0,
  kFixed64Type = 1,
  kLengthType = 2,
  kStartGroupType = 3,
  kEndGroupType = 4,
  kFixed32Type = 5,
};

constexpr uint32_t MakeTag(uint32_t field_number, WireType type) {
  return field_number << 3 | type;
}
constexpr uint32_t FieldNumberOf(uint32_t tag) { return tag >> 3; }
constexpr WireType WireTypeOf(uint32_t tag) { return static_cast<WireType>(tag & 7); }

// How deep messages and groups may nest below the outermost message, as in protobuf.
constexpr int kMaxDepth = 100;

// Every Read returns false when the bytes are not well-formed; error() then says why, offset() is
// near the spot, and the reader must not be used any more.
class Reader {
 public:
  Reader() = default;

  // `offset` is the place of the first byte in the outermost message, for offset() only.
  explicit Reader(const Bytes& bytes, size_t offset = 0)
      : at_(bytes.head_),
        end_(bytes.head_ + bytes.head_size_),
        beyond_(bytes.size_ - bytes.head_size_),
        rest_(bytes.rest_),
        end_offset_(offset + bytes.size_) {}

  bool done() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_) + beyond_; }
  size_t offset() const { return end_offset_ - left(); }
  const char* error() const { return error_; }

  // All bytes not yet read.
  Bytes Rest() const { return Bytes(at_, end_ - at_, left(), rest_); }

  // A field's tag: its number is never 0.
  bool ReadTag(uint32_t* tag) {
    if (at_ != end_ && *at_ < 0x80 && *at_ >= 8) {
      *tag = *at_;
      Step(1);
      return true;
    }
    return ReadLongTag(tag);
  }

  // Reads `tag` if it comes next, in its only one-byte form: the fast way through the records of a
  // repeated field. False says nothing about what comes next.
  bool SkipTag(uint32_t tag) {
    if (tag >= 0x80 || at_ == end_ || *at_ != tag) return false;
    Step(1);
    return true;
  }

  bool ReadVarint(uint64_t* value) {
    if (at_ != end_ && *at_ < 0x80) {
      *value = *at_;
      Step(1);
      return true;
    }
    return ReadLongVarint(value);
  }

  // Requires size <= left().
  Bytes Take(size_t size) {
    const Bytes bytes(at_, std::min(size, static_cast<size_t>(end_ - at_)), size, rest_);
    Advance(size);
    return bytes;
  }

  // A length and that many bytes.
  bool ReadBytes(Bytes* bytes) {
    size_t size;
    if (at_ != end_ && *at_ < 0x80) {
      size = *at_;
      Step(1);
    } else if (!ReadLongLength(&size)) {
      return false;
    }
    if (size > left()) return Fail("length goes past the end");
    *bytes = Take(size);
    return true;
  }

  // Reads the records that begin with `tag` and hold less than 128 bytes, as long as they end
  // before the last byte of the current slice; calls visit(const uint8_t* data, size_t size) for
  // each: the fast way through many short strings. Reads nothing where `tag` has more than one
  // byte.
  template <typename Visit>
  void ReadShortRecords(uint32_t tag, Visit&& visit) {
    if (tag >= 0x80) return;
    const uint8_t* at = at_;
    const uint8_t* const end = end_;
    while (end - at > 2 && at[0] == tag && at[1] < 0x80 && end - at > 2 + at[1]) {
      const size_t size = at[1];
      visit(at + 2, size);
      at += 2 + size;
    }
    at_ = at;
  }

  // A length and that many bytes, to be read as a message or a packed field.
  bool ReadNested(Reader* nested) {
    Bytes bytes;
    if (!ReadBytes(&bytes)) return false;
    *nested = Reader(bytes, offset() - bytes.size());
    return true;
  }

  bool Skip(size_t size) {
    if (size > left()) return Fail("value goes past the end");
    Advance(size);
    return true;
  }

  // The value that follows `tag`, whatever it is. `depth`: how deep groups may still nest.
  bool SkipValue(uint32_t tag, int depth);

  // Calls read(uint32_t tag) for each field that is left: it reads the value from this reader, and
  // says whether that went well.
  template <typename Read>
  bool ReadFields(Read&& read) {
    uint32_t tag;
    while (!done()) {
      if (!ReadTag(&tag) || !read(tag)) return false;
    }
    return true;
  }

 private:
  bool Fail(const char* error) {
    error_ = error;
    return false;
  }

  // Goes `size` bytes on; requires size <= left().
  void Advance(size_t size) {
    if (size < static_cast<size_t>(end_ - at_)) {
      at_ += size;
    } else {
      AdvanceAcross(size);
    }
  }

  // Advance(size) for a size that does not go past the current slice.
  void Step(size_t size) {
    at_ += size;
    if (at_ == end_ && beyond_ > 0) AdvanceAcross(0);
  }

  void AdvanceAcross(size_t size);
  bool ReadLongTag(uint32_t* tag);
  bool ReadLongVarint(uint64_t* value);
  bool ReadLongLength(size_t* size);
  bool ReadShortNumber(uint64_t* value, const char* too_long);
  bool SkipGroup(uint32_t field_number, int depth);

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;  // of the current slice; equals at_ only when all is read
  size_t beyond_ = 0;             // bytes left after end_ ...
  const Slice* rest_ = nullptr;   // ... from the start of this slice on
  size_t end_offset_ = 0;
  const char* error_ = "";
};

// How many varints `body`, that of a packed field, consists of; false if it is not well-formed.
bool CountVarints(const Bytes& body, int64_t* count);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_READER_H_
