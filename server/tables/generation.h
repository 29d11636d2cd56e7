// The state of a model's tables between two deltas. All runs of a request read the same state, on
// all threads.
#ifndef COLCAST_SERVER_TABLES_GENERATION_H_
#define COLCAST_SERVER_TABLES_GENERATION_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/tables/overlay.h"

namespace colcast::tables {

struct Generation {
  int64_t deltas = 0;
  std::vector<std::shared_ptr<const Overlay>> overlays;  // for the tables that have changed
};
using GenerationPtr = std::shared_ptr<const Generation>;

// While it exists, runs on its thread read this generation of the tables. Null means that no table
// has changed.
class ReadsGeneration {
 public:
  // With `pinned`, later objects on this thread have no effect.
  explicit ReadsGeneration(GenerationPtr generation, bool pinned = false) : before_(here_) {
    if (!before_.pinned) here_ = {std::move(generation), pinned};
  }
  ~ReadsGeneration() { here_ = std::move(before_); }
  ReadsGeneration(const ReadsGeneration&) = delete;
  ReadsGeneration& operator=(const ReadsGeneration&) = delete;

  static const GenerationPtr& Here() { return here_.generation; }

  // Returns null unless the table at this address has changed.
  static const Overlay* Of(const void* table) {
    if (Here() == nullptr) return nullptr;
    for (const auto& overlay : Here()->overlays) {
      if (overlay->table() == table) return overlay.get();
    }
    return nullptr;
  }

  // The number of the last delta that changed one of these tables; 0 if none did. It identifies
  // their contents.
  static int64_t LastChangeOf(const std::vector<const void*>& tables) {
    int64_t last = 0;
    if (Here() == nullptr) return last;
    for (const void* const table : tables) {
      const Overlay* const overlay = Of(table);
      if (overlay != nullptr) last = std::max(last, overlay->sequence());
    }
    return last;
  }

 private:
  struct State {
    GenerationPtr generation;
    bool pinned;
  };
  inline static thread_local State here_ = {nullptr, false};
  State before_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_GENERATION_H_
