#include "server/states/key.h"

#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>

#include <cstddef>
#include <random>
#include <unordered_map>

namespace colcast::states {

KeyHash::KeyHash() {
  std::random_device random;  // reads getrandom(2) or the processor's generator
  for (uint64_t& word : secret_) word = uint64_t{random()} << 32 | random();
}

Key KeyHash::operator()(const void* data, size_t size) const {
  const highwayhash::HHKey key = {secret_[0], secret_[1], secret_[2], secret_[3]};
  highwayhash::HHResult128 hash;
  highwayhash::InstructionSets::Run<highwayhash::HighwayHash>(key, static_cast<const char*>(data),
                                                              size, &hash);
  return {hash[1], hash[0]};
}

bool FindDistinctRows(const std::vector<Key>& keys, int64_t most, std::vector<int64_t>* first,
                      std::vector<int64_t>* index) {
  std::unordered_map<Key, int64_t, LowWord> places;
  first->clear();
  index->resize(keys.size());
  for (size_t row = 0; row < keys.size(); ++row) {
    const auto [place, is_new] = places.try_emplace(keys[row], first->size());
    if (is_new) first->push_back(static_cast<int64_t>(row));
    if (static_cast<int64_t>(first->size()) > most) return false;
    (*index)[row] = place->second;
  }
  return true;
}

}  // namespace colcast::states
