// Destroys versions on threads of its own. Freeing a model takes long, and whoever holds its last
// reference is most often a thread that has requests to answer.
#ifndef COLCAST_SERVER_MODELS_UNLOADER_H_
#define COLCAST_SERVER_MODELS_UNLOADER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "server/models/model_status.h"

namespace colcast::models {

class Unloader {
 public:
  explicit Unloader(int num_threads);
  // Waits until all that was released before is destroyed. What is released later is destroyed
  // where that happens.
  ~Unloader();
  Unloader(const Unloader&) = delete;
  Unloader& operator=(const Unloader&) = delete;

  // `servable` in other hands: once the last copy of what this returns is gone, it is destroyed on
  // one of the unloader's threads, which calls `on_destroyed` then.
  std::shared_ptr<const Servable> Share(std::shared_ptr<const Servable> servable,
                                        std::function<void()> on_destroyed);

 private:
  class Queue;

  const std::shared_ptr<Queue> queue_;  // lives as long as anything that was shared
  std::vector<std::thread> threads_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_UNLOADER_H_
