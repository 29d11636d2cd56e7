// Computes the states of item table rows before requests need them, on otherwise idle CPUs.
#ifndef COLCAST_SERVER_INFERENCE_STATE_FILLER_H_
#define COLCAST_SERVER_INFERENCE_STATE_FILLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/inference/item_lookup.h"

namespace colcast::inference {

// Uses a low-priority thread, which the destructor stops.
class StateFiller {
 public:
  // `items` and `model` must outlive this object.
  StateFiller(const ItemLookup* items, const engine::Model* model);
  ~StateFiller();

 private:
  // Which rows of a table have been filled.
  struct Progress {
    uint64_t table = 0;
    uint32_t next = 0;  // number of the next row
  };

  void Run();
  bool FillSome(const std::shared_ptr<const items::ItemTable>& table, Progress* progress) const;

  const ItemLookup* const items_;
  const engine::Model* const model_;
  StopFlag stop_;
  Thread thread_;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_STATE_FILLER_H_
