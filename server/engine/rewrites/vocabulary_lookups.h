// A rewrite: a vocabulary's lookup, the token that is not looked up and a list's padding become one
// ColcastVocabularyLookup (vocabulary_op.h), which asks the table itself once for a value that
// several rows repeat, and once for the padding.
//
//   SelectV2(Equal(values, token), id, LookupTableFindV2(HashTableV2, values, missing))
//
// as Keras' IntegerLookup and StringLookup write it, and LookupTableFindV2 alone behind a padded
// list (padded_list.h).
#ifndef COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Changes `graph` in place, as GroupLookups() does; returns how many lookups became such an op.
absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds,
                                             tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_LOOKUPS_H_
