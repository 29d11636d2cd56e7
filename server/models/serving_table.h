// Maps requests to the versions that answer them: the only structure about models that every
// request reads.
#ifndef COLCAST_SERVER_MODELS_SERVING_TABLE_H_
#define COLCAST_SERVER_MODELS_SERVING_TABLE_H_

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/base/status.h"
#include "server/models/model_config.h"
#include "server/models/model_state.h"
#include "server/models/model_status.h"
#include "server/wire/predict_request.h"

namespace colcast::models {

// A model's label that must name a serving version before the server is ready.
struct ReadyLabel {
  std::string model;
  std::string label;
};

// Returns INVALID_ARGUMENT if the model does not have the label.
Status ResolveLabel(const std::map<std::string, int64_t>& labels, const std::string& label,
                    int64_t* version);

// Checks whether `wanted` may replace the configuration of `present`. Returns FAILED_PRECONDITION,
// naming the label, for a label of a version that does not serve; with `allow_unavailable`, only if
// the label moves there from another version.
Status CheckLabels(const std::vector<ModelConfig>& wanted,
                   const std::map<std::string, ModelState>& present, bool allow_unavailable);

// For each of `awaited` that names no serving version, a sentence with the reason.
std::vector<std::string> MissingLabels(const std::vector<ReadyLabel>& awaited,
                                       const std::map<std::string, ModelState>& present);

// The versions of one model that can answer.
struct ServingModel {
  std::map<int64_t, std::shared_ptr<const Servable>> versions;
  std::map<std::string, int64_t> labels;
  bool loading = false;  // it has no version yet, and may or may not get one
};

using ServingModels = std::unordered_map<std::string, ServingModel>;

// Returns UNAVAILABLE instead of NOT_FOUND while the server's first models load, because it is not
// yet known which models it will have. TensorFlow Serving opens its port only after that, so
// clients treat NOT_FOUND as final.
Status FirstModelsLoad();

class ServingTable {
 public:
  // Replaces the table. Readers wait only for the exchange of a pointer. `ready` says that the
  // first load of all models has ended.
  void Replace(ServingModels models, bool ready);

  // See ModelManager::Find().
  Status Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const;

 private:
  mutable std::shared_mutex mutex_;
  ServingModels models_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_SERVING_TABLE_H_
