// Turns fuzz bytes into PredictRequests that are almost valid, which random bytes rarely are, and
// into tf.Examples that are similar to each other, as in a request.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_
#define COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace colcast::fuzz {

// Reads decisions of one or a few bytes each from `data`; beyond its end, all bytes are 0.
class Decisions {
 public:
  Decisions(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool done() const { return size_ == 0; }
  uint8_t Byte();
  uint32_t Below(uint32_t bound) { return Byte() % bound; }
  bool OneIn(uint32_t chances) { return Below(chances) == chances - 1; }
  // Returns an interesting 64-bit number: small, at or next to a power of two, or arbitrary.
  uint64_t Number();

 private:
  const uint8_t* data_;
  size_t size_;
};

// Returns the wire bytes of a PredictRequest. Most known fields have the right wire type. Fields
// may be packed, repeated, merged, in any order, unknown, written with long varints and, rarely,
// damaged.
std::string BuildRequest(Decisions* decisions);

// Returns serialized tf.Examples with some of the features `names`, and with unknown ones. Their
// lists may be packed, empty, repeated, merged, in any order and, rarely, damaged.
std::vector<std::string> BuildExamples(const std::vector<std::string>& names, Decisions* decisions);

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_
