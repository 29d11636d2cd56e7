// The op ColcastGroupedLookup: what the lookups of many features and the Concat they meet in
// compute, each feature's rows written straight into the joined matrix. It exists in the server
// only; a SavedModel never holds it.
//
// Inputs: `columns`, one tensor for each feature, rows first; `tables`, matrices or handles of
// variables that hold one, of the output's type; `rows`, numbers of rows, each of shape [1].
// Attributes, one element for each feature: `chains`, see lookup_chain.h; `table`, its position in
// `tables`, -1 where it is copied; `rows_of`, for a column of one row, the position in `rows` of
// how often what becomes of that row is repeated, otherwise -1; `shapes`, what its column's shape
// must fit; `lookups`, the node that looked it up, which an error names. `in_int8`: positions, in
// `tables`, of variables that are read in int8 (int8_tables.h). Output: [rows, the sum of the
// features' widths].
//
// Errors are those of the ops it stands for: of Gather for an id that is no row of the table, of
// EnsureShape for a column's shape, of ConcatV2 where the numbers of rows differ.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_OP_H_

namespace colcast::engine {

// The op's name. Whoever asks for it has the op linked in and registered.
const char* GroupedLookupOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_OP_H_
