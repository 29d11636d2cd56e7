// The expansion rule: which inputs of a request came as one row, and how many rows they need.
//
// One pure function, used by the fork of TF Serving and by the native server:
//   1. An input is batched if its declared first dimension is unknown, unless its rows are another
//      domain's. Others are passed as they come, if their shape fits the declared one. One of
//      unknown rank may be a parameter: it is batched only if it is the signature's only input.
//   2. N is the largest first dimension among the batched inputs.
//   3. A batched input with N rows passes, with 1 row it is expanded to N, any other is an error.
//   4. An absent input takes its default from the signature, as if it had been sent.
//   5. Nothing is guessed: two rows beside three are an error, not a pattern.
//
// Rows of another domain are those of DOMAIN_state/... beside an int64 input row_to_DOMAIN [?]: the
// latter has a row for each candidate and says which row of DOMAIN is its own. So the exporter's
// columnar_pair takes the states of any number of users beside those of N items.
//
// Corner cases that follow:
//   - Zero rows are legal: all batched inputs with 0 rows give N = 0. Beside an input of 1 row,
//     however, N is 1 and the input of 0 rows is the error.
//   - A scalar sent to an only input of unknown rank has no rows: it passes, and N is 1.
//   - An input alone in its signature has none to agree with. Its trailing dimensions of 1 may be
//     left out or added, as TF Serving's clients do: half_plus_two declares [?,1] and is sent [3].
//   - Without any batched input that has rows, N is 1 (a signature of scalars, or all absent).
#ifndef COLCAST_SERVING_PATCHES_EXPANSION_RULE_H_
#define COLCAST_SERVING_PATCHES_EXPANSION_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/types.pb.h"

namespace colcast {

using Dims = absl::InlinedVector<int64_t, 4>;

// One input as the signature declares it.
struct DeclaredInput {
  std::string alias;                                    // the request's name for it
  tensorflow::DataType dtype = tensorflow::DT_INVALID;  // DT_INVALID: any
  bool unknown_rank = false;
  Dims dims;                  // -1: unknown size
  bool other_domain = false;  // its rows are not the candidates'; set by FindOtherDomains()
  bool has_default = false;
  Dims default_dims;  // of SignatureDef.defaults[alias]
  tensorflow::DataType default_dtype = tensorflow::DT_INVALID;

  // Rule 1.
  bool batched() const { return !other_domain && (unknown_rank || (!dims.empty() && dims[0] < 0)); }
};

// Marks a signature's inputs whose rows, if they have any, are not the candidates'.
void FindOtherDomains(absl::Span<DeclaredInput> declared);

// What a request sent for one input. `dims` is as it came: nothing has been checked.
struct ReceivedShape {
  bool absent = true;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  absl::Span<const int64_t> dims;
};

enum class InputAction : uint8_t {
  kPass,     // feed what came
  kExpand,   // repeat the one row that came to ExpansionPlan::rows
  kDefault,  // feed the default, its one row repeated to ExpansionPlan::rows if it is batched
};

struct ExpansionPlan {
  int64_t rows = 1;                  // N
  std::vector<InputAction> actions;  // one for each declared input
};

// Applies the rule. `received[i]` is what came for `declared[i]`.
//
// `*plan` is overwritten; reuse it, then nothing is allocated. INVALID_ARGUMENT names every
// offending input: absent without default; another dtype, rank or inner dimension than declared; a
// shape that no tensor has; a number of rows that is neither 1 nor N (with an input that has N).
// REQUIRES: both spans have the same size.
absl::Status PlanExpansion(absl::Span<const DeclaredInput> declared,
                           absl::Span<const ReceivedShape> received, ExpansionPlan* plan);

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_EXPANSION_RULE_H_
