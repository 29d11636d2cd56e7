// Finds a request's columns by name; can be cleared and refilled without allocating.
#ifndef COLCAST_SERVER_WIRE_NAME_TABLE_H_
#define COLCAST_SERVER_WIRE_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace colcast {

// An open-addressing hash table that numbers names in the order in which they are added. The hash
// is seeded at random, so nobody can choose names that collide. The table does not own the names.
class NameTable {
 public:
  NameTable();

  void Clear();

  // Returns the number of `name`. A new name is added and gets the number size() - 1.
  size_t FindOrAdd(std::string_view name);

  // Returns size() if `name` is not in the table.
  size_t Find(std::string_view name) const;

  size_t size() const { return names_.size(); }

 private:
  // The slot that holds `name`, or the empty slot where it belongs.
  size_t SlotOf(std::string_view name) const;
  size_t Hash(std::string_view name) const;
  void Grow();

  uint64_t seed_;
  std::vector<std::string_view> names_;
  // Each slot holds a name's number plus 1, or 0 if empty. The number of slots is a power of two.
  std::vector<uint32_t> slots_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_NAME_TABLE_H_
