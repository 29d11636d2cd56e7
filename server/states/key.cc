#include "server/states/key.h"

#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>

#include <random>

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

}  // namespace colcast::states
