// The features that a model reads in each domain, as recorded by its export, and whether a table
// provides them.
#ifndef COLCAST_SERVER_ITEMS_MODEL_FEATURES_H_
#define COLCAST_SERVER_ITEMS_MODEL_FEATURES_H_

#include <map>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/items/table_file.h"
#include "server/wire/example_features.h"

namespace colcast::items {

// A model's features by domain and name, over all its signatures.
using ModelFeatures = std::map<std::string, std::map<std::string, ExampleFeature>, std::less<>>;

// Reads the text of assets.extra/colcast.json. Leaves out malformed entries.
ModelFeatures ReadModelFeatures(std::string_view json);

// Like ReadModelFeatures(), for the model in `directory`; empty if it has no such file.
ModelFeatures ReadModelFeaturesOf(const std::string& directory);

// Returns FAILED_PRECONDITION, with the first difference, unless the table's domain has the same
// features with the same kinds, dtypes, shapes and defaults.
Status CheckFeatures(const ModelFeatures& model, const std::string& domain,
                     const ExampleFeatures& table);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_MODEL_FEATURES_H_
