// Destroys versions on separate threads. Freeing a model takes long, and the thread that releases
// the last reference usually has requests to answer.
#ifndef COLCAST_SERVER_MODELS_UNLOADER_H_
#define COLCAST_SERVER_MODELS_UNLOADER_H_

#include <functional>
#include <memory>
#include <vector>

#include "server/base/thread.h"
#include "server/models/model_status.h"

namespace colcast::models {

class Unloader {
 public:
  explicit Unloader(int num_threads);
  // Waits until everything released so far is destroyed. Servables released later are destroyed by
  // the releasing thread.
  ~Unloader();
  Unloader(const Unloader&) = delete;
  Unloader& operator=(const Unloader&) = delete;

  // Returns a pointer to `servable`. When its last copy is released, one of the unloader's threads
  // destroys the servable and then calls `on_destroyed`.
  std::shared_ptr<const Servable> Share(std::shared_ptr<const Servable> servable,
                                        std::function<void()> on_destroyed);

 private:
  class Queue;

  const std::shared_ptr<Queue> queue_;  // lives as long as any pointer from Share()
  std::vector<Thread> threads_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_UNLOADER_H_
