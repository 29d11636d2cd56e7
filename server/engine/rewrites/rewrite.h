// Rewrites of a signature's graph: their interface, the available ones, and how they are applied.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct Rewrite {
  std::string_view name;  // e.g. "grouped lookups"
  std::string_view does;  // the text after a count, such as " lookups run as one op"

  // Changes a signature's graph in place, using ops whose names begin with "Colcast"; the rest of
  // the graph stays as it is. Does not look beyond nodes named in `feeds`. Returns the number of
  // places changed. If the graph cannot be read, returns that error and leaves the graph unchanged.
  std::function<absl::StatusOr<int>(const std::set<std::string>& feeds,
                                    tensorflow::GraphDef* graph)>
      apply;
};

// The exact rewrites, in the order in which they are applied. Each keeps outputs bit-identical for
// every input, and pays wherever it applies, because one op does the work of many.
std::vector<Rewrite> ExactRewrites();

// Rewrites that change outputs slightly; a choice file names those to apply (rewrite_choices.h).
// Leaves out those whose instructions this CPU lacks. `int8_tables` are variables whose int8 rows
// are mapped.
std::vector<Rewrite> FastRewrites(const std::set<std::string>& int8_tables);

// A rewrite's name in a choice file.
inline constexpr char kInt8Tables[] = "int8 tables";

// Maps a signature to the graph that it needs (needed_graph.h).
using SignatureGraphs = std::map<std::string, tensorflow::GraphDef>;

// Applies the rewrites, in order, to a signature's graph. Returns a line that says what they did,
// such as "14 lookups run as one op"; empty if they found nothing, or if the graph has loops or may
// change state. Returns FAILED_PRECONDITION if an output that is not a float, such as a rank or a
// comparison with a threshold, depends on an inexact rewrite; the graph must then not be used.
absl::StatusOr<std::string> RewriteGraph(const std::vector<Rewrite>& rewrites,
                                         const tensorflow::SignatureDef& declared,
                                         tensorflow::GraphDef* graph);

// A hash of a model's signatures and their graphs: 16 hexadecimal digits.
std::string GraphFingerprint(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_
