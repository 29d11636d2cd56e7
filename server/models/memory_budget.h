// Refuses models that do not fit in memory, before the kernel kills the server for loading them.
#ifndef COLCAST_SERVER_MODELS_MEMORY_BUDGET_H_
#define COLCAST_SERVER_MODELS_MEMORY_BUDGET_H_

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "server/base/machine.h"
#include "server/base/status.h"

namespace colcast::models {

// The total size of the files under `directory`, following links to files, and the size of the
// graph alone. 0 if there are none.
struct ModelSize {
  int64_t bytes = 0;
  int64_t graph_bytes = 0;
};
ModelSize SizeOnDisk(const std::string& directory);

class MemoryBudget {
 public:
  // A model is assumed to need its size on disk, plus kGraphCopies times its graph (TensorFlow
  // copies the graph's constants that often during a load), plus the fraction `margin_fraction` of
  // that sum. With a negative margin, everything fits.
  explicit MemoryBudget(
      double margin_fraction,
      std::function<int64_t()> available = [] { return AvailableMemory(); });

  // The memory of a load in progress, released by the destructor.
  class Reservation {
   public:
    Reservation() = default;
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    friend class MemoryBudget;
    MemoryBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  static constexpr int64_t kGraphCopies = 10;

  // Returns RESOURCE_EXHAUSTED, with the sizes, if the model does not fit in memory along with the
  // other loads in progress.
  Status Reserve(const ModelSize& size, Reservation* reservation);

 private:
  const double margin_fraction_;
  const std::function<int64_t()> available_;
  std::mutex mutex_;
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MEMORY_BUDGET_H_
