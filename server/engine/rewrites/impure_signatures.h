// Which signatures answer by more than their request and the model's files.
//
// States are cached, requests joined and split, and graphs rewritten only where the answer is a
// function of those two: no served signature writes what is read, and no op reads a clock, random
// numbers, a file or a counter. This is read from the graph, so it also holds for models that no
// export or an earlier one wrote.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_IMPURE_SIGNATURES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_IMPURE_SIGNATURES_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct Impurity {
  std::string why;      // names the op, or the variable and the signature that writes it
  bool writes = false;  // the signature itself: a second run is not the same as one
};

// By signature.
using Impurities = std::map<std::string, Impurity>;

// The impure ones among those that are served. `unserved`: signatures that no request can run.
Impurities FindImpure(const tensorflow::MetaGraphDef& model,
                      const std::vector<std::string>& unserved);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_IMPURE_SIGNATURES_H_
