// Literal wire bytes for the tests of this folder.
#ifndef COLCAST_SERVER_WIRE_TESTING_H_
#define COLCAST_SERVER_WIRE_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/bytes.h"
#include "server/wire/column.h"
#include "server/wire/predict_request.h"
#include "server/wire/reader.h"
#include "server/wire/writer.h"

namespace colcast {

// The values of a column, for tests.
template <typename T>
std::vector<T> ElementsOf(const Column& column) {
  int64_t count = 0;
  EXPECT_TRUE(ElementCount(column, &count).ok());
  std::vector<T> elements(count);
  const Status status = CopyValues(column, count, elements.data());
  EXPECT_TRUE(status.ok()) << status.message;
  return elements;
}

inline std::vector<std::string> StringsOf(const Column& column) {
  int64_t count = 0;
  EXPECT_TRUE(ElementCount(column, &count).ok());
  std::vector<Bytes> views;
  const Status status = AddStrings(column, count, &views);
  EXPECT_TRUE(status.ok()) << status.message;
  std::vector<std::string> strings;
  for (const Bytes& view : views) strings.push_back(view.ToString());
  return strings;
}

inline std::string Varint(uint64_t value) {
  std::string text;
  AppendVarint(value, &text);
  return text;
}

inline std::string Varints(const std::vector<uint64_t>& values) {
  std::string text;
  for (uint64_t value : values) text += Varint(value);
  return text;
}

inline std::string Tag(uint32_t field_number, WireType type) {
  return Varint(MakeTag(field_number, type));
}

inline std::string VarintField(uint32_t field_number, uint64_t value) {
  return Tag(field_number, kVarintType) + Varint(value);
}

inline std::string BytesField(uint32_t field_number, std::string_view body) {
  return Tag(field_number, kLengthType) + Varint(body.size()) + std::string(body);
}

// The bytes of `values`, as fixed-size values are encoded on the wire.
template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Owns a copy of some bytes, cut into slices.
class SlicedBytes {
 public:
  // A new slice begins at each of the ascending `cuts`; a repeated cut makes an empty slice.
  SlicedBytes(std::string_view text, const std::vector<size_t>& cuts) : text_(text) {
    size_t begin = 0;
    const auto* data = reinterpret_cast<const uint8_t*>(text_.data());
    for (size_t cut : cuts) {
      slices_.push_back({data + begin, cut - begin});
      begin = cut;
    }
    slices_.push_back({data + begin, text_.size() - begin});
  }
  SlicedBytes(const SlicedBytes&) = delete;
  SlicedBytes& operator=(const SlicedBytes&) = delete;

  Bytes bytes() const { return Bytes(slices_.data(), slices_.size()); }

 private:
  const std::string text_;
  std::vector<Slice> slices_;
};

// Calls check(const Bytes&) with `text` in one slice, cut in two (with an empty slice between) at
// every place, and in slices of one byte.
template <typename Check>
void ForEachSlicing(std::string_view text, Check&& check) {
  check(Bytes(text));
  std::vector<size_t> all_cuts;
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    check(SlicedBytes(text, {cut, cut}).bytes());
    all_cuts.push_back(cut);
  }
  check(SlicedBytes(text, all_cuts).bytes());
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_TESTING_H_
