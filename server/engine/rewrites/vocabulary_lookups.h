// A rewrite: turns a vocabulary lookup, with the token that bypasses it and a list's padding, into
// one ColcastVocabularyLookup (vocabulary_op.h), which looks up a value that consecutive rows
// repeat only once, and the padding only once.
//
//   SelectV2(Equal(values, token), id, LookupTableFindV2(HashTableV2, values, missing))
//
// as written by Keras' IntegerLookup and StringLookup, or LookupTableFindV2 alone after a padded
// list (list_patterns.h).
#ifndef COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Changes `graph` in place, under the rules of GroupLookups(). Returns the number of lookups
// replaced.
absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds,
                                             tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_LOOKUPS_H_
