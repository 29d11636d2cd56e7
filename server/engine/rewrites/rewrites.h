// Rewrites of a signature's graph: their interface, the available ones, and how they are applied.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITES_H_

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
  // the graph stays as it is. Does not look behind nodes named in `feeds`. Returns the number of
  // places changed. Returns an error, and leaves the graph unchanged, if the graph cannot be read.
  std::function<absl::StatusOr<int>(const std::set<std::string>& feeds,
                                    tensorflow::GraphDef* graph)>
      apply;
};

// The exact rewrites, in the order in which they are applied. Each keeps outputs bit-identical for
// every input, and saves time wherever it applies, because one op does the work of many.
std::vector<Rewrite> ExactRewrites();

// Rewrites that change outputs slightly; a choice file names those to apply (rewrite_choices.h).
// Leaves out rewrites whose instructions this CPU lacks. `int8_tables` are variables whose int8
// rows are mapped.
std::vector<Rewrite> FastRewrites(const std::set<std::string>& int8_tables);

// The name of UseInt8Tables() in a choice file.
inline constexpr char kInt8Tables[] = "int8 tables";

// Maps a signature to the graph that it needs (needed_graph.h).
using SignatureGraphs = std::map<std::string, tensorflow::GraphDef>;

// Applies the rewrites, in order, to a signature's graph. Returns a line that says what they did,
// such as "14 lookups run as one op"; empty if they found nothing, or if the graph has loops,
// sparse outputs or side effects. Returns FAILED_PRECONDITION if an output that is not a float,
// such as a rank or a comparison, depends on an inexact rewrite; the graph must then not be used.
absl::StatusOr<std::string> RewriteGraph(const std::vector<Rewrite>& rewrites,
                                         const tensorflow::SignatureDef& declared,
                                         tensorflow::GraphDef* graph);

// A hash of the signatures that can be rewritten and of their graphs, as 16 hexadecimal digits.
std::string GraphFingerprint(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs);

// The rewrites. See Rewrite::apply for their common contract.

// Gathers rows of a variable at constant positions once instead of in each run. Late expansion
// splits a product by the rows of its kernel. Where user and item rows interleave, the exported
// graph gathers them from the variable in each run, because an export copies no weights into a
// graph.
absl::StatusOr<int> GatherKernelRowsOnce(const std::set<std::string>& feeds,
                                         tensorflow::GraphDef* graph);

// Turns a vocabulary lookup into one ColcastVocabularyLookup, together with the token that bypasses
// it and a list's padding. The op looks up the padding, and a value that consecutive rows repeat,
// only once. Returns the number of lookups replaced. The lookup is
//
//   SelectV2(Equal(values, token), id, LookupTableFindV2(HashTableV2, values, missing))
//
// as written by Keras' IntegerLookup and StringLookup, or LookupTableFindV2 alone after a padded
// list (feature_chain.h).
absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds,
                                             tensorflow::GraphDef* graph);

// Turns a Concat of many features' lookups into one ColcastGroupedLookup (lookup_op.cc), with the
// Concat's name. Returns the number of lookups grouped. Results stay bit-identical, and errors keep
// their codes.
//
// A feature is recognized from the Concat back to its column, or to the first tensor that none of
// these ops produces:
//   [AsString], StringToHashBucketFast, FloorMod, Minimum, Maximum, ClipByValue, Cast between int32
//   and int64, and Keras' wrapping of negative ids, with constant arguments; then Gather, GatherV2
//   or ResourceGather of rows of a matrix; then Sum over a list's values, or their mean without
//   padding (feature_chain.h); in between, ops that only change the shape.
// Other inputs of the Concat are copied.
absl::StatusOr<int> GroupLookups(const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

// Makes the ColcastGroupedLookups that look up or sum rows of `variables` read them in int8
// (lookup_tables.h). Control edges from reads of such a variable move to the lookup. Scores stay
// close but not bit-identical. Returns the number of tables now read in int8.
absl::StatusOr<int> UseInt8Tables(const std::set<std::string>& variables,
                                  const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

// Turns a float32 MatMul with a variable, some of its rows, or a constant into one
// ColcastBfloat16Product (packed_product_op.cc), together with the rows added to it and the Relu.
// Scores stay close but not bit-identical. Returns the number of products replaced.
absl::StatusOr<int> UseBfloat16Products(const std::set<std::string>& feeds,
                                        tensorflow::GraphDef* graph);

// Names of ops that exist only in the server; a SavedModel never contains them. Calling a function
// links its op's registration in.
const char* GroupedLookupOpName();
const char* KernelRowsOpName();
const char* Bfloat16ProductOpName();

// Whether this CPU supports the instructions that ColcastBfloat16Product needs. Only builds for x86
// contain the op.
bool HasBfloat16Products();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITES_H_
