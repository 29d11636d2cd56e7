// Protobuf's wire format: varints, and cursors over bytes.
#ifndef COLCAST_SERVER_WIRE_READER_H_
#define COLCAST_SERVER_WIRE_READER_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "server/base/status.h"
#include "server/base/text.h"
#include "server/wire/bytes.h"

namespace colcast {

constexpr size_t kMaxVarintSize = 10;
constexpr uint64_t kContinuationBits = 0x8080808080808080;

inline uint64_t LoadEightBytes(const uint8_t* at) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Joins the low seven bits of the eight bytes, least significant group first.
inline uint64_t JoinSevenBitGroups(uint64_t word) {
  word &= ~kContinuationBits;
  word = (word & 0x007f007f007f007f) | ((word & 0x7f007f007f007f00) >> 1);
  word = (word & 0x00003fff00003fff) | ((word & 0x3fff00003fff0000) >> 2);
  return (word & 0x000000000fffffff) | ((word & 0x0fffffff00000000) >> 4);
}

// Reads one varint; returns the byte after it, or null if it is longer than 10 bytes. Bits beyond
// the 64th are dropped. Requires 10 readable bytes.
inline const uint8_t* ReadVarintUnchecked(const uint8_t* at, uint64_t* value) {
  const uint64_t word = LoadEightBytes(at);
  const uint64_t last_bytes = ~word & kContinuationBits;
  if (last_bytes != 0) {
    const uint64_t up_to_last = last_bytes ^ (last_bytes - 1);
    *value = JoinSevenBitGroups(word & up_to_last);
    return at + (__builtin_ctzll(last_bytes) + 1) / 8;
  }
  *value = JoinSevenBitGroups(word) | uint64_t{at[8] & 0x7fu} << 56;
  if (at[8] < 0x80) return at + 9;
  *value |= uint64_t{at[9]} << 63;
  return at[9] < 0x80 ? at + 10 : nullptr;
}

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

// Why and where reading failed.
struct Malformed {
  std::string reason;
  size_t offset = 0;   // where the unreadable value is in the outermost message
  std::string fields;  // field numbers from the outermost message inwards: "2.2.5"

  bool found() const { return !reason.empty(); }
  // Returns INVALID_ARGUMENT: "malformed PredictRequest: REASON (field 2.2.5, byte 10 of 14)".
  // `where`, which may be empty, precedes the reason.
  Status ToStatus(const char* message_name, size_t message_size,
                  const std::string& where = "") const;
};

// A cursor over Bytes, across slices. Every Read method returns false if the bytes are malformed,
// after describing the error in `malformed`; the reader must then not be used any more.
class Reader {
 public:
  Reader() = default;

  // `malformed` may be null. Readers of nested messages share it.
  explicit Reader(const Bytes& bytes, Malformed* malformed = nullptr)
      : Reader(bytes, bytes.size_, kMaxDepth, malformed) {}

  bool done() const { return at_ == end_; }
  size_t offset() const { return end_offset_ - left(); }

  // All bytes not yet read.
  Bytes Rest() const { return Bytes(at_, end_ - at_, left(), rest_); }

  // Reads a field's tag. A field number of 0 is malformed.
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
    if (size > left()) return Fail("length goes past the end", offset());
    *bytes = Take(size);
    return true;
  }

  // Reads a string, which must be valid UTF-8.
  bool ReadText(Bytes* text) { return ReadBytes(text) && CheckText(*text); }
  // Whether the text that was just read is valid UTF-8.
  bool CheckText(const Bytes& text) {
    return IsValidUtf8(text) || Fail("not valid UTF-8", offset() - text.size());
  }

  // Reads a packed field's body and counts its values, which would have `type` if they were not
  // packed.
  bool ReadPacked(WireType type, Bytes* body, int64_t* count);

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

  // Reads a length and that many bytes, and makes `nested` a reader for them.
  bool ReadNested(Reader* nested) {
    Bytes bytes;
    if (!ReadBytes(&bytes)) return false;
    *nested = Reader(bytes, offset(), depth_ - 1, malformed_);
    return true;
  }

  // Skips the value that follows `tag`. Groups may nest as deeply as in protobuf.
  bool SkipValue(uint32_t tag) { return SkipValue(tag, depth_); }

  // Adds to Malformed::fields the field whose value could not be read. Call it after a failure,
  // innermost field first.
  void AddField(uint32_t tag);

 private:
  Reader(const Bytes& bytes, size_t end_offset, int depth, Malformed* malformed)
      : at_(bytes.head_),
        end_(bytes.head_ + bytes.head_size_),
        beyond_(bytes.size_ - bytes.head_size_),
        rest_(bytes.rest_),
        end_offset_(end_offset),
        malformed_(malformed),
        depth_(depth) {}

  size_t left() const { return static_cast<size_t>(end_ - at_) + beyond_; }
  bool Fail(const char* reason, size_t offset);

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

  bool Skip(size_t size) {
    if (size > left()) return Fail("value goes past the end", offset());
    Advance(size);
    return true;
  }
  void AdvanceAcross(size_t size);
  bool ReadLongTag(uint32_t* tag);
  bool ReadLongVarint(uint64_t* value);
  bool ReadLongLength(size_t* size);
  bool ReadShortNumber(uint64_t* value, const char* too_long);
  bool SkipValue(uint32_t tag, int depth);
  bool SkipGroup(uint32_t field_number, int depth);

  const uint8_t* at_ = nullptr;
  // End of the current slice; equals at_ only at the end of all bytes.
  const uint8_t* end_ = nullptr;
  size_t beyond_ = 0;            // number of bytes after end_
  const Slice* rest_ = nullptr;  // the slice in which those bytes begin
  size_t end_offset_ = 0;
  Malformed* malformed_ = nullptr;
  int depth_ = kMaxDepth;  // how many levels of groups may still nest
};

// Counts the values of `type` in a packed field's body. Returns false if it is malformed.
bool CountPacked(WireType type, const Bytes& body, int64_t* count);

// A cursor over contiguous bytes, several times as fast as Reader. It gives up, returning false
// without a reason, on malformed bytes and on forms that protobuf's libraries do not write, such as
// varints with bits beyond the 64th; the caller then starts again with a Reader.
class FlatReader {
 public:
  FlatReader() = default;
  explicit FlatReader(const Bytes& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_; }
  Bytes Rest() const { return Bytes(at_, end_ - at_); }

  // REQUIRES !done(). Gives up on tags of several bytes.
  bool ReadTag(uint32_t* tag) {
    *tag = *at_++;
    return *tag >= 8 && *tag < 0x80;
  }
  bool SkipTag(uint32_t tag) {
    if (at_ == end_ || *at_ != tag) return false;
    ++at_;
    return true;
  }
  bool ReadVarint(uint64_t* value) { return ReadNumber(value, kMaxVarintSize); }
  bool ReadBytes(Bytes* bytes) {
    uint64_t size;
    if (!ReadNumber(&size, 5) || size > static_cast<size_t>(end_ - at_)) return false;
    *bytes = Bytes(at_, size);
    at_ += size;
    return size <= INT_MAX;
  }
  bool ReadText(Bytes* text) { return ReadBytes(text) && CheckText(*text); }
  bool CheckText(const Bytes& text) { return IsValidUtf8(text.view()); }
  bool ReadPacked(WireType type, Bytes* body, int64_t* count) {
    return ReadBytes(body) && CountPacked(type, *body, count);
  }
  bool ReadNested(FlatReader* nested) {
    Bytes bytes;
    if (!ReadBytes(&bytes)) return false;
    *nested = FlatReader(bytes);
    return true;
  }
  template <typename Visit>
  void ReadShortRecords(uint32_t tag, Visit&& visit) {
    while (end_ - at_ >= 2 && at_[0] == tag && at_[1] < 0x80 && end_ - at_ >= 2 + at_[1]) {
      visit(at_ + 2, at_[1]);
      at_ += 2 + at_[1];
    }
  }
  // REQUIRES size <= Rest().size().
  void Skip(size_t size) { at_ += size; }
  bool SkipValue(uint32_t) { return false; }
  void AddField(uint32_t) {}

 private:
  // Inlined at every call, because the decoders' speed depends on it.
  __attribute__((always_inline)) bool ReadNumber(uint64_t* number, int most_bytes) {
    if (at_ == end_ || *at_ >= 0x80) return ReadLongNumber(number, most_bytes);
    *number = *at_++;
    return true;
  }
  bool ReadLongNumber(uint64_t* number, int most_bytes) {
    *number = 0;
    for (int shift = 0; at_ != end_ && shift < 7 * most_bytes; shift += 7) {
      const uint8_t byte = *at_++;
      if (shift == 63 && byte > 1) return false;
      *number |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

// Calls read(uint32_t tag) for each remaining field. `read` must consume the field's value from
// `reader`, and return false on failure.
template <typename AnyReader, typename Read>
[[gnu::always_inline]] inline bool ReadFields(AnyReader* reader, Read&& read) {
  uint32_t tag;
  while (!reader->done()) {
    if (!reader->ReadTag(&tag)) return false;
    if (!read(tag)) {
      reader->AddField(tag);
      return false;
    }
  }
  return true;
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_READER_H_
