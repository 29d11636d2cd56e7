// The rewrites that rewrite.cc lists. See Rewrite::apply for their common contract.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Turns a Concat of many features' lookups into one ColcastGroupedLookup (lookup_op.h), with the
// Concat's name. Returns the number of lookups grouped. Results stay bit-identical, and errors keep
// their codes.
//
// A feature is recognized from the Concat back to its column, or to the first tensor that these ops
// do not explain:
//   [AsString], StringToHashBucketFast, FloorMod, Minimum, Maximum, ClipByValue, Cast between int32
//   and int64, and Keras' wrapping of negative ids, with constant arguments; then Gather, GatherV2
//   or ResourceGather of rows of a matrix; then Sum over a list's values, or their mean without
//   padding (list_patterns.h); in between, ops that only change the shape.
// Other inputs of the Concat are copied.
absl::StatusOr<int> GroupLookups(const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

// Turns a vocabulary lookup into one ColcastVocabularyLookup (vocabulary_op.h), together with the
// token that bypasses it and a list's padding. The op looks up the padding, and a value that
// consecutive rows repeat, only once. Returns the number of lookups replaced. The lookup is
//
//   SelectV2(Equal(values, token), id, LookupTableFindV2(HashTableV2, values, missing))
//
// as written by Keras' IntegerLookup and StringLookup, or LookupTableFindV2 alone after a padded
// list (list_patterns.h).
absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds,
                                             tensorflow::GraphDef* graph);

// Makes the ColcastGroupedLookups that look up or sum rows of `variables` read them in int8
// (int8_table.h). Control edges from reads of such a variable move to the lookup. Scores stay close
// but not bit-identical. Returns the number of tables now read in int8.
absl::StatusOr<int> UseInt8Tables(const std::set<std::string>& variables,
                                  const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

// Turns a float32 MatMul with a variable, some of its rows, or a constant into one
// ColcastBfloat16Product (packed_product_op.h), together with the rows added to it and the Relu.
// Scores stay close but not bit-identical. Returns the number of products replaced.
absl::StatusOr<int> UseBfloat16Products(const std::set<std::string>& feeds,
                                        tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITES_H_
