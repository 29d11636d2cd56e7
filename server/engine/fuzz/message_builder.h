// Turns fuzz bytes into PredictRequests that are almost valid, which random bytes rarely are.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_
#define COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace colcast::fuzz {

// Reads decisions of one or a few bytes each from `data`; after its end, all bytes are zeros.
class Decisions {
 public:
  Decisions(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool done() const { return size_ == 0; }
  uint8_t Byte();
  // A number below `bound`.
  uint32_t Below(uint32_t bound) { return Byte() % bound; }
  bool OneIn(uint32_t chances) { return Below(chances) == chances - 1; }
  // Returns an interesting 64-bit number: a small one, a power of two or a neighbour of one, or
  // any.
  uint64_t Number();

 private:
  const uint8_t* data_;
  size_t size_;
};

// Returns the wire bytes of a PredictRequest. Known fields mostly have their own wire types; they
// are packed or not, repeated, merged, in any order, with long varints, unknown fields and, rarely,
// damage.
std::string BuildRequest(Decisions* decisions);

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_
