// Finds rows with equal keys.
#ifndef COLCAST_SERVER_STATES_DISTINCT_ROWS_H_
#define COLCAST_SERVER_STATES_DISTINCT_ROWS_H_

#include <cstdint>
#include <vector>

#include "server/states/key.h"

namespace colcast::states {

// Sets `*first` to the first row of each distinct key, in ascending order, and `*index` to the
// position of each row's key in `*first`. Returns false, and leaves both outputs unspecified, if
// there are more than `most` distinct keys.
bool FindDistinctRows(const std::vector<Key>& keys, int64_t most, std::vector<int64_t>* first,
                      std::vector<int64_t>* index);

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_DISTINCT_ROWS_H_
