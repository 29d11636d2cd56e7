// Who answers a request: the one structure of the models that every request reads.
#ifndef COLCAST_SERVER_MODELS_SERVING_TABLE_H_
#define COLCAST_SERVER_MODELS_SERVING_TABLE_H_

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "server/base/status.h"
#include "server/models/model_status.h"
#include "server/wire/predict_request.h"

namespace colcast::models {

// What one model can answer with.
struct ServingModel {
  std::map<int64_t, std::shared_ptr<const Servable>> versions;
  std::map<std::string, int64_t> labels;
  bool loading = false;  // it has no version yet, and whether it will is not known
};

using ServingModels = std::unordered_map<std::string, ServingModel>;

// UNAVAILABLE, for what would be NOT_FOUND: the server's first models load, and what it will have
// is not known. TensorFlow Serving opens its port afterwards, so those who wait for it take
// NOT_FOUND for a model that is not there as the sign that all others are.
Status FirstModelsLoad();

class ServingTable {
 public:
  // Puts `models` in place of what was there. Readers wait for no more than a pointer's exchange.
  // `ready`: the first load of all has ended.
  void Replace(ServingModels models, bool ready);

  // ModelManager::Find.
  Status Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const;

 private:
  mutable std::shared_mutex mutex_;
  ServingModels models_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_SERVING_TABLE_H_
