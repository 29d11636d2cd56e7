// Writes protobuf's wire format, into memory of a precomputed size or into a growing string.
#ifndef COLCAST_SERVER_WIRE_WRITER_H_
#define COLCAST_SERVER_WIRE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "server/wire/reader.h"

namespace colcast {

inline size_t VarintSize(uint64_t value) {
  const int bits = 64 - __builtin_clzll(value | 1);
  return (bits + 6) / 7;
}

// Returns the byte after the varint.
inline uint8_t* WriteVarint(uint64_t value, uint8_t* out) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

inline void AppendVarint(uint64_t value, std::string* out) {
  uint8_t bytes[kMaxVarintSize];
  out->append(reinterpret_cast<const char*>(bytes), WriteVarint(value, bytes) - bytes);
}

// The encoded size of a length followed by `size` bytes.
inline size_t DelimitedSize(size_t size) { return VarintSize(size) + size; }

// The encoded size of a field with `size` bytes.
inline size_t FieldSize(uint32_t field, size_t size) {
  return VarintSize(MakeTag(field, kLengthType)) + DelimitedSize(size);
}

// The encoded size of a string field, which is omitted if empty.
inline size_t TextFieldSize(uint32_t field, std::string_view text) {
  return text.empty() ? 0 : FieldSize(field, text.size());
}

struct MemorySink {
  uint8_t* at;
  void Varint(uint64_t value) { at = WriteVarint(value, at); }
  void Raw(const void* data, size_t size) {
    if (size > 0) std::memcpy(at, data, size);
    at += size;
  }
};

struct StringSink {
  std::string* text;
  void Varint(uint64_t value) { AppendVarint(value, text); }
  void Raw(const void* data, size_t size) { text->append(static_cast<const char*>(data), size); }
};

template <typename Sink>
class WriterTo {
 public:
  explicit WriterTo(Sink sink) : sink_(sink) {}

  void Varint(uint64_t value) { sink_.Varint(value); }
  void Raw(const void* data, size_t size) { sink_.Raw(data, size); }

  // Writes the tag and length of a field. The caller then writes its `size` bytes.
  void Head(uint32_t field, size_t size) {
    Varint(MakeTag(field, kLengthType));
    Varint(size);
  }
  void Number(uint32_t field, uint64_t value) {
    Varint(MakeTag(field, kVarintType));
    Varint(value);
  }
  void Fixed64(uint32_t field, uint64_t value) {
    Varint(MakeTag(field, kFixed64Type));
    Raw(&value, sizeof(value));  // little-endian, like this machine
  }
  void Field(uint32_t field, std::string_view bytes) {
    Head(field, bytes.size());
    Raw(bytes.data(), bytes.size());
  }
  // Omits an empty text.
  void TextField(uint32_t field, std::string_view text) {
    if (!text.empty()) Field(field, text);
  }

 private:
  Sink sink_;
};

class Writer : public WriterTo<MemorySink> {
 public:
  explicit Writer(uint8_t* out) : WriterTo({out}) {}
};

class StringWriter : public WriterTo<StringSink> {
 public:
  explicit StringWriter(std::string* text) : WriterTo({text}) {}
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_WRITER_H_
