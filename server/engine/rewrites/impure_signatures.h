// Finds signatures whose answers depend on more than the request and the model's files.
//
// States may be cached, requests joined and split, and graphs rewritten only if the answer is a
// function of request and files: no served signature may write what a signature reads, and no op
// may read a clock, random numbers, a file or a counter. The check reads the graph, so it also
// covers models that were not exported, or were exported by an earlier version.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_IMPURE_SIGNATURES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_IMPURE_SIGNATURES_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct Impurity {
  std::string why;  // names the op, or the variable and the signature that writes it
  // Whether the signature itself writes, so that running it twice differs from running it once.
  bool writes = false;
};

using Impurities = std::map<std::string, Impurity>;

// Finds the impure signatures, except `unserved` ones, which no request can run, and whose writes
// do not count.
Impurities FindImpure(const tensorflow::MetaGraphDef& model,
                      const std::vector<std::string>& unserved);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_IMPURE_SIGNATURES_H_
