// A message in slices as gRPC may deliver it, in memory that ends where each slice does.
#ifndef COLCAST_SERVER_WIRE_FUZZ_SLICES_H_
#define COLCAST_SERVER_WIRE_FUZZ_SLICES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/bytes.h"

namespace colcast::fuzz {

// Copies the message into heap blocks of exactly the slices' sizes, so that sanitizers catch a read
// past a slice.
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

#endif  // COLCAST_SERVER_WIRE_FUZZ_SLICES_H_
