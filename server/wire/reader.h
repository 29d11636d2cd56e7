// A cursor over Bytes that reads protobuf's wire format across slices.
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

// Every Read method returns false if the bytes are malformed; error() then says why, offset() is
// near the place, and the reader must not be used any more.
class Reader {
 public:
  Reader() = default;

  // `offset` is the position of the first byte in the outermost message; it only affects offset().
  explicit Reader(const Bytes& bytes, size_t offset = 0)
      : at_(bytes.head_),
        end_(bytes.head_ + bytes.head_size_),
        beyond_(bytes.size_ - bytes.head_size_),
        rest_(bytes.rest_),
        end_offset_(offset + bytes.size_) {}

  bool done() const { return at_ == end_; }
  size_t offset() const { return end_offset_ - left(); }
  const char* error() const { return error_; }

  // All bytes not yet read.
  Bytes Rest() const { return Bytes(at_, end_ - at_, left(), rest_); }

  // Reads a field's tag, whose number is never 0.
  bool ReadTag(uint32_t* tag) {
    if (at_ != end_ && *at_ < 0x80 && *at_ >= 8) {
      *tag = *at_;
      Step(1);
      return true;
    }
    return ReadLongTag(tag);
  }

  // Consumes `tag` if it comes next in its one-byte form: the fast path through a repeated field's
  // records. If it returns false, the tag may still come next in another form.
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

  // Consumes `size` bytes. REQUIRES size <= Rest().size().
  Bytes Take(size_t size) {
    const Bytes bytes(at_, std::min(size, static_cast<size_t>(end_ - at_)), size, rest_);
    Advance(size);
    return bytes;
  }

  // Reads a length and that many bytes.
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

  // Calls visit(const uint8_t* data, size_t size) for records with `tag` shorter than 128 bytes,
  // while they end before the last byte of the current slice: the fast path for many short strings.
  // Reads nothing if `tag` takes more than one byte.
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

  // Reads a length and that many bytes, as a reader for a message or a packed field.
  bool ReadNested(Reader* nested) {
    Bytes bytes;
    if (!ReadBytes(&bytes)) return false;
    *nested = Reader(bytes, offset() - bytes.size());
    return true;
  }

  // Skips the value that follows `tag`. At most `depth` levels of groups may still nest.
  bool SkipValue(uint32_t tag, int depth);

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_) + beyond_; }
  bool Fail(const char* error) {
    error_ = error;
    return false;
  }

  // Skips `size` bytes; REQUIRES size <= left().
  void Advance(size_t size) {
    if (size < static_cast<size_t>(end_ - at_)) {
      at_ += size;
    } else {
      AdvanceAcross(size);
    }
  }

  // Advance() for a size that stays within the current slice.
  void Step(size_t size) {
    at_ += size;
    if (at_ == end_ && beyond_ > 0) AdvanceAcross(0);
  }

  void AdvanceAcross(size_t size);
  bool ReadLongTag(uint32_t* tag);
  bool ReadLongVarint(uint64_t* value);
  bool ReadLongLength(size_t* size);
  bool ReadShortNumber(uint64_t* value, const char* too_long);
  bool Skip(size_t size);
  bool SkipGroup(uint32_t field_number, int depth);

  const uint8_t* at_ = nullptr;
  // End of the current slice; equals at_ only at the end of all bytes.
  const uint8_t* end_ = nullptr;
  size_t beyond_ = 0;            // number of bytes after end_
  const Slice* rest_ = nullptr;  // the slice in which they begin
  size_t end_offset_ = 0;
  const char* error_ = "";
};

// Calls read(uint32_t tag) for each remaining field. It must consume the field's value from
// `reader`, and return false on failure.
template <typename Read>
bool ReadFields(Reader* reader, Read&& read) {
  uint32_t tag;
  while (!reader->done()) {
    if (!reader->ReadTag(&tag) || !read(tag)) return false;
  }
  return true;
}

// Counts the varints in a packed field's body. Returns false if it is malformed.
bool CountVarints(const Bytes& body, int64_t* count);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_READER_H_
