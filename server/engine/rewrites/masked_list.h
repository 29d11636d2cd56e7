// Recognizes the mean of a list's table rows in which hidden ids count as 0.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_MASKED_LIST_H_
#define COLCAST_SERVER_ENGINE_REWRITES_MASKED_LIST_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/rewrites/shaped_graph.h"

namespace colcast::engine {

struct MaskedMean {
  Output rows;  // float [rows, values, width]
  Output ids;   // [rows, values]
  // The id whose rows are multiplied by 0, all others by 1.
  int64_t hidden;
  std::vector<const tensorflow::Node*> nodes;  // all nodes from `rows` and `ids` to the mean
};

// Matches sum(rows * mask, 1) / maximum(sum(mask, 1), 1), where mask is cast(ids != hidden,
// float)[:, :, None]. Nothing for any other tensor, or if a node in between is in `feeds`.
std::optional<MaskedMean> ReadMaskedMean(const ShapedGraph& graph,
                                         const std::set<std::string>& feeds, Output tensor);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_MASKED_LIST_H_
