// Turns fuzz bytes into PredictRequests that are almost valid, which random bytes rarely are, and
// into tf.Examples that are similar to each other, as in a request. Reports disagreements about
// them.
#ifndef COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_
#define COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace colcast::fuzz {

// The run's messages, which Disagree() prints in hexadecimal for a unit test.
inline auto& current_messages = *new std::vector<std::string>();

[[noreturn]] inline void Disagree(const char* condition, const std::string& what) {
  std::fprintf(stderr, "DISAGREEMENT: %s: %s\n", condition, what.c_str());
  for (const std::string& message : current_messages) {
    std::fprintf(stderr, "message: ");
    for (const unsigned char byte : message) std::fprintf(stderr, "%02x", byte);
    std::fprintf(stderr, "\n");
  }
  std::abort();
}

#define CHECK_THAT(condition, what) \
  if (!(condition)) Disagree(#condition, what)

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

// Writes a varint in its shortest form, or padded with up to ten zero groups.
std::string BuildVarint(uint64_t value, bool is_padded, Decisions* decisions);

// Returns the wire bytes of a PredictRequest. Most known fields have the right wire type. Fields
// may be packed, repeated, merged, in any order, unknown, written with long varints and, rarely,
// damaged.
std::string BuildRequest(Decisions* decisions);

// Returns serialized tf.Examples with some of the features `names`, and with unknown ones. Their
// lists may be packed, empty, repeated, merged, in any order and, rarely, damaged.
std::vector<std::string> BuildExamples(const std::vector<std::string>& names, Decisions* decisions);

}  // namespace colcast::fuzz

#endif  // COLCAST_SERVER_ENGINE_FUZZ_MESSAGE_BUILDER_H_
