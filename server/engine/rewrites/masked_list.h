// Recognizes a list's rows of a table of which some count as 0: their sum and their mean.
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
  Output rows;                                 // float [rows, values, width]
  Output ids;                                  // [rows, values]
  int64_t hidden;                              // whose rows are multiplied by 0, all others by 1
  std::vector<const tensorflow::Node*> nodes;  // from `rows` and `ids` to the mean
};

// Where `tensor` is sum(rows * mask, 1) / maximum(sum(mask, 1), 1) with the mask
// cast(ids != hidden, float)[:, :, None]. Nothing for any other tensor, and if a node between is in
// `feeds`.
std::optional<MaskedMean> ReadMaskedMean(const ShapedGraph& graph,
                                         const std::set<std::string>& feeds, Output tensor);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_MASKED_LIST_H_
