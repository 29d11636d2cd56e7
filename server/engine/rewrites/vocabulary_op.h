// The op ColcastVocabularyLookup: the ids of a column's values in a vocabulary, a static hash
// table. It exists in the server only; a SavedModel never holds it.
//
// Inputs: `column`, strings or int64; `table`, the vocabulary's handle; `missing`, the id of a
// value it does not have. Of a padded list also `lengths`, [rows]: of a row, as many values count,
// all behind them are `padding`, and rows end where the longest does; `column` is a matrix then.
// With a `token`, which is not looked up, `token_id`. Output: int64 ids of the column's shape, of a
// list [rows, the longest].
//
// Errors are those of the ops it stands for: of LookupTableFindV2 for a table that holds nothing
// yet or something else, of GatherNd, whose node `gather` names, for a length above the column's.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_OP_H_

namespace colcast::engine {

// The op's name. Whoever asks for it has the op linked in and registered.
const char* VocabularyLookupOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_VOCABULARY_OP_H_
