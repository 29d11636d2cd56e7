// Callers that asked for a new configuration and wait for its new models.
#ifndef COLCAST_SERVER_MODELS_RELOAD_WAITERS_H_
#define COLCAST_SERVER_MODELS_RELOAD_WAITERS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/models/model_state.h"

namespace colcast::models {

using ReloadDone = std::function<void(const Status&)>;

class ReloadWaiters {
 public:
  void Add(std::set<std::string> models, ReloadDone done) {
    waiters_.push_back({std::move(models), std::move(done)});
  }

  // The answers for callers whose models have all settled, which must be called without holding a
  // lock: OK, or UNKNOWN with the reasons for models that do not serve.
  std::vector<std::function<void()>> TakeSettled(const std::map<std::string, ModelState>& models);

  // The answers for all remaining callers, each with `status`.
  std::vector<std::function<void()>> TakeAll(const Status& status);

 private:
  struct Waiter {
    std::set<std::string> models;
    ReloadDone done;
  };

  std::vector<Waiter> waiters_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_RELOAD_WAITERS_H_
