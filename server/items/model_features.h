// The features that a model reads in each domain, according to its export record, and a check that
// an item table provides them.
#ifndef COLCAST_SERVER_ITEMS_MODEL_FEATURES_H_
#define COLCAST_SERVER_ITEMS_MODEL_FEATURES_H_

#include <map>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/items/table_file.h"
#include "server/wire/example_features.h"
#include "server/wire/feature_json.h"

namespace colcast::items {

// The features of all of a model's signatures, by domain and name.
using ModelFeatures = std::map<std::string, std::map<std::string, ExampleFeature>, std::less<>>;

// Reads them from an export's record. Ignores malformed entries.
ModelFeatures ReadModelFeatures(const rapidjson::Document& record);

// Returns FAILED_PRECONDITION, with the first difference, unless the model's features in `domain`
// and the table's features are the same, with the same kinds, dtypes, shapes and defaults.
Status CheckFeatures(const ModelFeatures& model, const std::string& domain,
                     const ExampleFeatures& table);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_MODEL_FEATURES_H_
