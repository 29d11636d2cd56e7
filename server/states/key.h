// What a state is found by: a keyed 128-bit hash of the features it was computed from.
//
// Two different inputs under one key would be a wrong score. With a secret drawn when a version is
// loaded nobody can look for such a pair, and by chance there is none: among 2^32 states one in
// 2^65 versions has it.
#ifndef COLCAST_SERVER_STATES_KEY_H_
#define COLCAST_SERVER_STATES_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace colcast::states {

struct Key {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const Key& a, const Key& b) { return a.high == b.high && a.low == b.low; }
  friend bool operator!=(const Key& a, const Key& b) { return !(a == b); }
};

// For tables of the standard library: a key is a hash with a secret already.
struct LowWord {
  size_t operator()(const Key& key) const { return key.low; }
};

// HighwayHash with a secret of its own. Immutable.
class KeyHash {
 public:
  // Draws the secret from the operating system.
  KeyHash();
  explicit KeyHash(const std::array<uint64_t, 4>& secret) : secret_(secret) {}

  Key operator()(const void* data, size_t size) const;

 private:
  alignas(32) std::array<uint64_t, 4> secret_;
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_KEY_H_
