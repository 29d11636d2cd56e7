// The callers that asked for a new configuration and are waiting for its new models.
#ifndef COLCAST_SERVER_MODELS_RELOAD_WAITERS_H_
#define COLCAST_SERVER_MODELS_RELOAD_WAITERS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/models/model_state.h"

namespace colcast::models {

using ReloadDone = std::function<void(const Status&)>;

class ReloadWaiters {
 public:
  // `models` are the base paths of the new models by name.
  void Add(std::map<std::string, std::string> models, ReloadDone done) {
    waiters_.push_back({std::move(models), std::move(done)});
  }

  // Returns functions that answer the callers whose models have all settled: with OK, or with
  // UNKNOWN and the reasons if models do not serve, also because a later configuration has removed
  // or moved them. Call them without holding a lock.
  std::vector<std::function<void()>> TakeSettled(const std::map<std::string, ModelState>& models);

  // Returns functions that answer all remaining callers with `status`.
  std::vector<std::function<void()>> TakeAll(const Status& status);

 private:
  struct Waiter {
    std::map<std::string, std::string> models;
    ReloadDone done;
  };

  std::vector<Waiter> waiters_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_RELOAD_WAITERS_H_
