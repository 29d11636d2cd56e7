// A signature's graph with its rewrites applied.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_GRAPH_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_GRAPH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/rewrite.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// By signature: what it needs (needed_graph.h).
using SignatureGraphs = std::map<std::string, tensorflow::GraphDef>;

// Applies the rewrites, in order, to the graph that a signature needs. Returns what they did, "14
// lookups run as one op"; empty if they found nothing, or the graph may change something or has
// loops. FAILED_PRECONDITION, and a graph that must not be used, where an output that is no float,
// a rank or a threshold say, depends on a rewrite that is not exact.
absl::StatusOr<std::string> RewriteGraph(const std::vector<Rewrite>& rewrites,
                                         const tensorflow::SignatureDef& declared,
                                         tensorflow::GraphDef* graph);

// A hash of signatures and their graphs: 16 hexadecimal digits.
std::string GraphFingerprint(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_GRAPH_H_
