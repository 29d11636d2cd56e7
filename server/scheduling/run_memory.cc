#include "server/scheduling/run_memory.h"

namespace colcast::scheduling {
namespace {

// Runs below this size skip asking for available memory, which reads files.
constexpr int64_t kMuch = 64 << 20;

}  // namespace

RunMemory::Share::~Share() {
  if (memory_ != nullptr) memory_->taken_.fetch_sub(bytes_, std::memory_order_acq_rel);
}

RunMemory::Answer RunMemory::Reserve(int64_t bytes, Share* share) {
  if (bytes > max_bytes()) return Answer::kNever;
  int64_t others = taken_.load(std::memory_order_relaxed);
  if (bytes >= kMuch && bytes > options_.available() - others) return Answer::kNever;
  do {
    if (bytes > max_bytes() - others) return Answer::kLater;
  } while (!taken_.compare_exchange_weak(others, others + bytes, std::memory_order_acq_rel));
  share->memory_ = this;
  share->bytes_ = bytes;
  return Answer::kYes;
}

}  // namespace colcast::scheduling
