// Maps requests to the versions that answer them. This is the only model data structure that every
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
#include "server/wire/predict_request.h"

namespace colcast::models {

// A label that must name a serving version of the model before the server is ready.
struct ReadyLabel {
  std::string model;
  std::string label;
};

// Returns INVALID_ARGUMENT if there is no such label.
Status ResolveLabel(const std::map<std::string, int64_t>& labels, const std::string& label,
                    int64_t* version);

// Checks whether `wanted` may replace the configuration of `present`. Returns FAILED_PRECONDITION,
// naming the label, if a label names a version that does not serve. `allow_unavailable` allows this
// for new labels, but not for labels that move there from another version.
Status CheckLabels(const std::vector<ModelConfig>& wanted,
                   const std::map<std::string, ModelState>& present, bool allow_unavailable);

// For each label in `awaited` that does not name a serving version, a sentence with the reason.
std::vector<std::string> MissingLabels(const std::vector<ReadyLabel>& awaited,
                                       const std::map<std::string, ModelState>& present);

// The versions of one model that can answer requests.
struct ServingModel {
  std::map<int64_t, std::shared_ptr<const Servable>> versions;
  std::map<std::string, int64_t> labels;
  bool loading = false;  // the model has no version yet, but may get one
};

using ServingModels = std::unordered_map<std::string, ServingModel>;

// The error for unknown models while the server loads its first ones. It is UNAVAILABLE because
// clients treat NOT_FOUND as final, as TensorFlow Serving opens its port only after these loads.
Status FirstModelsLoad();

class ServingTable {
 public:
  // Replaces the table. Readers wait only while the contents are swapped. `ready` says that the
  // first loads of all models have ended.
  void Replace(ServingModels models, bool ready);

  // Finds the version for a request: the one with the requested number or label, or the highest
  // that serves. Returns UNAVAILABLE while the model loads its first version; NOT_FOUND for an
  // unknown model or version (UNAVAILABLE until the table is ready); INVALID_ARGUMENT for a missing
  // model name or an unknown label. Never waits for a load, and writes no shared memory except a
  // reference count.
  Status Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const;

 private:
  mutable std::shared_mutex mutex_;
  ServingModels models_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_SERVING_TABLE_H_
