// Adds rows of an item table to a request as columns.
#ifndef COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_
#define COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/items/item_table.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast::items {

// Adds the features of the table rows `numbers` to `request`, one column each, as if the client had
// sent them. Reads only the lengths of lists; the values stay in the table (StoredValues in
// server/wire/column.h), which the request keeps alive. REQUIRES that the request has none of these
// columns.
void AddColumns(std::shared_ptr<const ItemTable> table, std::vector<uint32_t> numbers,
                Span<size_t> features, DecodedRequest* request);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_
