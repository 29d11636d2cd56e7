// The op ColcastVocabularyLookup: the ids of a column's values in a vocabulary, which is a static
// hash table. It exists only in the server; a SavedModel never contains it.
//
// Inputs: `column`, strings or int64; `table`, the vocabulary's handle; `missing`, the id of values
// that it lacks. For a padded list also `lengths` [rows] and `padding`: in each row only that many
// values count, the rest are `padding`, and the list is as wide as the longest row; `column` is
// then a matrix. With a `token`, which bypasses the lookup, also `token_id`. Output: int64 ids in
// the column's shape, or [rows, longest] for a list.
//
// Errors are those of the replaced ops: LookupTableFindV2's for a table that is uninitialized or of
// other types, GatherNd's, with the node name `gather`, for a length beyond the column's width.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_OP_H_

namespace colcast::engine {

// The op's name. Calling this function links the op's registration in.
const char* VocabularyLookupOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_OP_H_
