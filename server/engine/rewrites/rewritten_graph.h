// Applies rewrites to a signature's graph.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_GRAPH_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_GRAPH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/rewrite.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// By signature, the graph that it needs (needed_graph.h).
using SignatureGraphs = std::map<std::string, tensorflow::GraphDef>;

// Applies the rewrites, in order, to a signature's graph. Returns a line on what they did, such as
// "14 lookups run as one op"; empty if they found nothing, or if the graph has loops or may change
// something. FAILED_PRECONDITION if an output that is not a float, such as a rank or a comparison
// with a threshold, depends on an inexact rewrite; the graph must then not be used.
absl::StatusOr<std::string> RewriteGraph(const std::vector<Rewrite>& rewrites,
                                         const tensorflow::SignatureDef& declared,
                                         tensorflow::GraphDef* graph);

// A hash of a model's signatures and their graphs: 16 hexadecimal digits.
std::string GraphFingerprint(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_GRAPH_H_
