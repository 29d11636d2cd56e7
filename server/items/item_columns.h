// Rows of a table as columns of a request.
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

// Adds to `request` the table's columns of these features for the rows `numbers`, as a client would
// send them. Reads only the lengths of lists; the values stay in the table (StoredValues in
// server/wire/column_values.h). The request must have none of these columns, and keeps the table
// alive.
void AddColumns(std::shared_ptr<const ItemTable> table, std::vector<uint32_t> numbers,
                Span<size_t> features, DecodedRequest* request);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_
