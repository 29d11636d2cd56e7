// Computes the states of item tables' rows before anybody asks for them, when nothing else is to
// do.
#ifndef COLCAST_SERVER_INFERENCE_STATE_FILLER_H_
#define COLCAST_SERVER_INFERENCE_STATE_FILLER_H_

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "server/base/stop_flag.h"
#include "server/engine/engine.h"
#include "server/inference/item_lookup.h"

namespace colcast::inference {

// Has a thread of low priority until it goes.
class StateFiller {
 public:
  // Both must outlive it.
  StateFiller(const ItemLookup* items, const engine::Model* model);
  ~StateFiller();

 private:
  // How far it has come with a table.
  struct Progress {
    uint64_t table = 0;
    uint32_t next = 0;  // the number of a row
  };

  void Run();
  bool FillSome(const std::shared_ptr<const items::ItemTable>& table, Progress* progress) const;

  const ItemLookup* const items_;
  const engine::Model* const model_;
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_STATE_FILLER_H_
