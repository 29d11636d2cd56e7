// Version labels: other names for version numbers, which a configuration can move.
#ifndef COLCAST_SERVER_MODELS_LABELS_H_
#define COLCAST_SERVER_MODELS_LABELS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/models/model_config.h"
#include "server/models/model_state.h"

namespace colcast::models {

// A label of a model that the server is not ready without.
struct ReadyLabel {
  std::string model;
  std::string label;
};

// INVALID_ARGUMENT for a label the model does not have.
Status ResolveLabel(const std::map<std::string, int64_t>& labels, const std::string& label,
                    int64_t* version);

// Whether `wanted` may take the place of what `present` is configured as: FAILED_PRECONDITION,
// naming it, for a label on a version that does not serve. With `allow_unavailable` only for one
// that has named another version so far.
Status CheckLabels(const std::vector<ModelConfig>& wanted,
                   const std::map<std::string, ModelState>& present, bool allow_unavailable);

// A sentence for each of `awaited` that names no version that serves, and why.
std::vector<std::string> MissingLabels(const std::vector<ReadyLabel>& awaited,
                                       const std::map<std::string, ModelState>& present);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_LABELS_H_
