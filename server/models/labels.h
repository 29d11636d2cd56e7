// Version labels: names for version numbers that a configuration can move to other versions.
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

// A label of a model without which the server is not ready.
struct ReadyLabel {
  std::string model;
  std::string label;
};

// INVALID_ARGUMENT if the model does not have the label.
Status ResolveLabel(const std::map<std::string, int64_t>& labels, const std::string& label,
                    int64_t* version);

// Whether the configuration `wanted` may replace the one of `present`: FAILED_PRECONDITION, naming
// it, for a label of a version that does not serve. With `allow_unavailable`, only if the label has
// named another version so far.
Status CheckLabels(const std::vector<ModelConfig>& wanted,
                   const std::map<std::string, ModelState>& present, bool allow_unavailable);

// For each of `awaited` that names no serving version, a sentence with the reason.
std::vector<std::string> MissingLabels(const std::vector<ReadyLabel>& awaited,
                                       const std::map<std::string, ModelState>& present);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_LABELS_H_
