// The op ColcastGroupedLookup: does the work of many features' lookups and of the Concat that joins
// them, writing each feature's rows directly into the joined matrix. It exists only in the server;
// a SavedModel never contains it.
//
// Inputs:
//   columns  one tensor per feature, rows first
//   tables   matrices of the output's type, or handles of variables that hold one
//   rows     numbers of rows, each of shape [1]
// Attributes with one element per feature:
//   chains   what is done with the column's values (lookup_chain.h)
//   table    position in `tables`; -1 if the column is copied
//   rows_of  position in `rows` of the number of times that a single row is repeated; otherwise -1
//   shapes   the shape that the column must fit
//   lookups  the node that did the lookup, for error messages
// The attribute `int8_tables` lists the positions in `tables` of variables to be read in int8
// (int8_table.h). Output: [rows, the sum of the features' widths].
//
// Errors are those of the replaced ops: Gather's for an id that is not a row of the table,
// EnsureShape's for a column's shape, ConcatV2's for different numbers of rows.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_OP_H_

namespace colcast::engine {

// The op's name. Calling this function links the op's registration in.
const char* GroupedLookupOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_OP_H_
