#include "server/engine/planned_request.h"

namespace colcast::engine {

ExpansionStats PlannedRequest::Expansion() const {
  ExpansionStats stats;
  stats.rows = rows();
  if (stats.rows == 1) return stats;
  for (const ReceivedInput& input : inputs) {
    const WireColumn& column = *AsWire(input.source);
    if (column.dims().empty() || column.dims()[0] != 1) continue;
    ++stats.columns_sent_once;
    stats.bytes_saved += (stats.rows - 1) * column.WireBytes();
  }
  return stats;
}

}  // namespace colcast::engine
