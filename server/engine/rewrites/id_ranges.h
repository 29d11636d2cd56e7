// Which numbers a signature's inputs may have as ids of rows.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_ID_RANGES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_ID_RANGES_H_

#include <cstdint>
#include <map>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// The rows of the tables that are looked up by what is computed from an input: whether as it is,
// hashed or modulo some number is not told.
struct IdRange {
  int64_t least = 0;  // of the smallest table
  int64_t most = 0;
};

// By the input's alias; inputs that lead to no table of known size have none.
using IdRanges = std::map<std::string, IdRange>;

IdRanges ReadIdRanges(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& declared);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_ID_RANGES_H_
