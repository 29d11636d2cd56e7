// Helpers for fuzz targets.
#ifndef COLCAST_SERVER_WIRE_FUZZ_TESTING_H_
#define COLCAST_SERVER_WIRE_FUZZ_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/bytes.h"
#include "server/wire/column.h"

namespace colcast::fuzz {

inline void Expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "DISAGREEMENT: %s\n", what.c_str());
  std::abort();
}

// The strings of a column.
inline std::vector<std::string> StringsOf(const Column& column) {
  int64_t count = 0;
  std::vector<Bytes> views;
  Expect(ElementCount(column, &count).ok(), "an accepted shape is invalid");
  Expect(AddStrings(column, count, &views).ok(), "accepted strings are invalid");
  std::vector<std::string> strings;
  for (const Bytes& view : views) strings.push_back(view.ToString());
  return strings;
}

// A message in slices, as gRPC may deliver it. Copies the message into heap blocks of exactly the
// slices' sizes, so that sanitizers catch a read past a slice.
class Slices {
 public:
  Slices(const std::string& message, uint8_t choice) {
    uint32_t random = choice;
    for (size_t at = 0; at < message.size();) {
      random = random * 1664525 + 1013904223;
      size_t size = message.size();
      if (choice == 1) size = 1;
      if (choice > 1) size = random >> 16 & (choice < 128 ? 7 : 63);
      size = std::min(size, message.size() - at);
      blocks_.emplace_back(new uint8_t[size]);
      if (size > 0) std::memcpy(blocks_.back().get(), message.data() + at, size);
      slices_.push_back({blocks_.back().get(), size});
      at += size;
    }
  }
  Bytes bytes() const { return Bytes(slices_.data(), slices_.size()); }

 private:
  std::vector<std::unique_ptr<uint8_t[]>> blocks_;
  std::vector<Slice> slices_;
};

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_WIRE_FUZZ_TESTING_H_
