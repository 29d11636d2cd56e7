#include "server/models/memory_budget.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace colcast::models {
namespace {

namespace fs = std::filesystem;

}  // namespace

ModelSize SizeOnDisk(const std::string& directory) {
  ModelSize size;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code gone;  // files may disappear meanwhile
    if (entry->is_regular_file(gone)) {
      const auto bytes = entry->file_size(gone);
      if (!gone) {
        size.bytes += static_cast<int64_t>(bytes);
        if (entry->path().stem() == "saved_model") size.graph_bytes += static_cast<int64_t>(bytes);
      }
    }
    entry.increment(error);
  }
  return size;
}

MemoryBudget::MemoryBudget(double margin_fraction, std::function<int64_t()> available)
    : margin_fraction_(margin_fraction), available_(std::move(available)) {}

MemoryBudget::Reservation::~Reservation() {
  if (budget_ == nullptr) return;
  std::lock_guard<std::mutex> lock(budget_->mutex_);
  budget_->reserved_ -= bytes_;
}

Status MemoryBudget::Reserve(const ModelSize& size, Reservation* reservation) {
  if (margin_fraction_ < 0) return OkStatus();
  const int64_t bytes = size.bytes + kGraphCopies * size.graph_bytes;
  const auto needed = static_cast<int64_t>(static_cast<double>(bytes) * (1 + margin_fraction_));
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t available = available_();
  if (needed > available - reserved_) {
    constexpr int64_t kMiB = 1 << 20;
    return ResourceExhausted("it would not fit in memory: it needs ", needed / kMiB, " MiB (",
                             size.bytes / kMiB, " MiB on disk, of which the graph takes ",
                             size.graph_bytes / kMiB, " MiB, and a margin of ", margin_fraction_,
                             ", --load_memory_margin_fraction), but ", available / kMiB,
                             " MiB are available, of which other loads in progress take ",
                             reserved_ / kMiB, " MiB");
  }
  reserved_ += needed;
  reservation->budget_ = this;
  reservation->bytes_ = needed;
  return OkStatus();
}

}  // namespace colcast::models
