#include "server/states/distinct_rows.h"

#include <cstddef>
#include <unordered_map>

namespace colcast::states {

bool FindDistinctRows(const std::vector<Key>& keys, int64_t most, std::vector<int64_t>* first,
                      std::vector<int64_t>* index) {
  std::unordered_map<Key, int64_t, LowWord> places;
  first->clear();
  index->resize(keys.size());
  for (size_t row = 0; row < keys.size(); ++row) {
    const auto [place, is_new] = places.try_emplace(keys[row], first->size());
    if (is_new) first->push_back(static_cast<int64_t>(row));
    if (static_cast<int64_t>(first->size()) > most) return false;
    (*index)[row] = place->second;
  }
  return true;
}

}  // namespace colcast::states
