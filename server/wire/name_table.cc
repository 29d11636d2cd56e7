#include "server/wire/name_table.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace colcast {
namespace {

constexpr size_t kInitialSlots = 512;

uint64_t RandomSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

NameTable::NameTable() : seed_(RandomSeed() | 1), slots_(kInitialSlots) {}

void NameTable::Clear() {
  if (names_.empty()) return;
  names_.clear();
  std::fill(slots_.begin(), slots_.end(), 0);
}

size_t NameTable::FindOrAdd(std::string_view name) {
  if (2 * names_.size() >= slots_.size()) Grow();
  uint32_t& slot = slots_[SlotOf(name)];
  if (slot == 0) {
    names_.push_back(name);
    slot = static_cast<uint32_t>(names_.size());
  }
  return slot - 1;
}

size_t NameTable::Find(std::string_view name) const {
  const uint32_t slot = slots_[SlotOf(name)];
  return slot == 0 ? size() : slot - 1;
}

size_t NameTable::SlotOf(std::string_view name) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = Hash(name) & mask;
  while (slots_[slot] != 0 && names_[slots_[slot] - 1] != name) slot = (slot + 1) & mask;
  return slot;
}

size_t NameTable::Hash(std::string_view name) const {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = seed_ ^ name.size();
  while (!name.empty()) {
    uint64_t word = 0;
    const size_t size = std::min(name.size(), sizeof(word));
    std::memcpy(&word, name.data(), size);
    hash = Mix(hash ^ word, kOdd ^ seed_);
    name.remove_prefix(size);
  }
  return hash;
}

void NameTable::Grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (size_t i = 0; i < names_.size(); ++i) {
    slots_[SlotOf(names_[i])] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace colcast
