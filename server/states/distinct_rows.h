// Which rows are the same as others.
#ifndef COLCAST_SERVER_STATES_DISTINCT_ROWS_H_
#define COLCAST_SERVER_STATES_DISTINCT_ROWS_H_

#include <cstdint>
#include <vector>

#include "server/states/key.h"

namespace colcast::states {

// Sets `*first` to the first row of each key, rising, and `*index` to the place of each row's key
// among them. False, and both hold anything, if there are more than `most` keys.
bool FindDistinctRows(const std::vector<Key>& keys, int64_t most, std::vector<int64_t>* first,
                      std::vector<int64_t>* index);

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_DISTINCT_ROWS_H_
