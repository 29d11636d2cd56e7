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

// Adds to `request` the columns of these features of the table, in the form in which a client would
// send them, for the rows `numbers`. Reads only the lengths of lists; values are stored ones
// (server/wire/column_values.h). The request, which must have none of these columns, keeps the
// table alive.
void AddColumns(std::shared_ptr<const ItemTable> table, std::vector<uint32_t> numbers,
                Span<size_t> features, DecodedRequest* request);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_COLUMNS_H_
