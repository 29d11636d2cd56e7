// Finds a request's columns by name; made to be cleared and filled again without allocating.
#ifndef COLCAST_SERVER_WIRE_NAME_TABLE_H_
#define COLCAST_SERVER_WIRE_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace colcast {

// An open-addressing hash table of the names that were added, numbered in that order. The hash is
// seeded at random, so nobody can choose names that collide. Owns no name.
class NameTable {
 public:
  NameTable();

  void Clear();

  // Returns the number of `name` if it is known; otherwise adds it and returns size() - 1.
  size_t FindOrAdd(std::string_view name);

  // Returns size() if `name` is unknown.
  size_t Find(std::string_view name) const;

  size_t size() const { return names_.size(); }

 private:
  // The slot that holds `name` or, if it is unknown, the empty one where it belongs.
  size_t SlotOf(std::string_view name) const;
  size_t Hash(std::string_view name) const;
  void Grow();

  uint64_t seed_;
  std::vector<std::string_view> names_;
  std::vector<uint32_t> slots_;  // a name's number plus 1, or 0; a power of two of them
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_NAME_TABLE_H_
