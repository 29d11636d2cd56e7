// Adds rows of an item table to a request as columns, and checks that the table provides the
// features that a model reads.
#ifndef COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_
#define COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/items/item_table.h"
#include "server/items/table_file.h"
#include "server/wire/bytes.h"
#include "server/wire/example_features.h"
#include "server/wire/feature_json.h"
#include "server/wire/predict_request.h"

namespace colcast::items {

// Adds the features of the table rows `numbers` to `request`, one column each, as if the client had
// sent them. Reads only the lengths of lists; the values stay in the table (StoredValues in
// server/wire/column.h), which the request keeps alive. REQUIRES that the request lacks these
// columns.
void AddColumns(std::shared_ptr<const ItemTable> table, std::vector<uint32_t> numbers,
                Span<size_t> features, DecodedRequest* request);

// The features of all of a model's signatures, by domain and name.
using ModelFeatures = std::map<std::string, std::map<std::string, ExampleFeature>, std::less<>>;

// Reads a model's features from its export record. Ignores malformed entries.
ModelFeatures ReadModelFeatures(const rapidjson::Document& record);

// Returns FAILED_PRECONDITION, with the first difference, unless the model's features in `domain`
// and the table's features are the same, with the same kinds, dtypes, shapes and defaults.
Status CheckFeatures(const ModelFeatures& model, const std::string& domain,
                     const ExampleFeatures& table);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_
