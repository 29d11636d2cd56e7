// The expansion rule decides which inputs of a request are repeated, and to how many rows.
//
// It is one pure function, used by the fork of TF Serving and by the native server:
//   1. An input is batched if its declared first dimension is unknown, unless its rows belong to
//      another domain or the signature takes parts of a sparse or ragged tensor. An input of
//      unknown rank may be a parameter, so it is batched only if it is the signature's only input.
//      Other inputs pass unchanged if their shape fits the declared one.
//   2. N is the largest first dimension among the batched inputs.
//   3. A batched input with N rows passes; one with 1 row is expanded to N; any other is an error.
//   4. An absent input takes its default from the signature, as if it had been sent.
//   5. Nothing is guessed: an input with two rows beside one with three is an error.
//
// In a signature that no export recorded, the native server applies the rule only if the signature
// refuses the rows that were sent (server/engine/row_trials.h).
//
// The rows of the inputs DOMAIN_state/... belong to another domain if the signature also has an
// int64 input row_to_DOMAIN of shape [?], the index of each candidate's row in DOMAIN. This is how
// the exporter's columnar_pair receives the states of any number of users with those of N items.
//
// Corner cases:
//   - Zero rows are legal: if all batched inputs have 0 rows, N is 0. But if another batched input
//     has 1 row, N is 1, and an input with 0 rows is an error.
//   - A signature's only input, if it has unknown rank, may be sent as a scalar, which has no rows:
//     it passes, and N is 1.
//   - A signature's only input may have more or fewer trailing dimensions of 1 than declared,
//     because TF Serving's clients rely on that: half_plus_two declares [?,1] and is sent [3].
//   - If no batched input has rows, N is 1 (a signature of scalars, or all inputs absent).
#ifndef COLCAST_SERVING_PATCHES_EXPANSION_RULE_H_
#define COLCAST_SERVING_PATCHES_EXPANSION_RULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/types.pb.h"

namespace colcast {

using Dims = absl::InlinedVector<int64_t, 4>;

// An input as declared by the signature.
struct DeclaredInput {
  std::string alias;                                    // its name in requests
  tensorflow::DataType dtype = tensorflow::DT_INVALID;  // DT_INVALID accepts any
  bool unknown_rank = false;
  Dims dims;                  // -1 for unknown sizes
  bool other_domain = false;  // its rows, if any, are not candidates
  bool has_default = false;
  Dims default_dims;  // dimensions of SignatureDef.defaults[alias]
  tensorflow::DataType default_dtype = tensorflow::DT_INVALID;
  // For a list's values, the position of its lengths, and vice versa, because they take their
  // defaults only together; -1 for all other inputs. Set by PairLists().
  int list_partner = -1;

  // Rule 1.
  bool batched() const { return !other_domain && (unknown_rank || (!dims.empty() && dims[0] < 0)); }
};

// Sets `other_domain` for states with an index, and for inputs of unknown rank that are not alone.
void FindOtherDomains(absl::Span<DeclaredInput> declared);

// Sets `list_partner` of lists [?,?] and their lengths, int64 [?] with the alias "LIST/length".
void PairLists(absl::Span<DeclaredInput> declared);

// What a request sent for one input. `dims` are unchecked.
struct ReceivedShape {
  bool absent = true;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  absl::Span<const int64_t> dims;
};

enum class InputAction : uint8_t {
  kPass,     // feed what was sent
  kExpand,   // repeat the one row that was sent, ExpansionPlan::rows times
  kDefault,  // feed the default; if the input is batched, expand it to ExpansionPlan::rows
};

struct ExpansionPlan {
  int64_t rows = 1;                  // N
  std::vector<InputAction> actions;  // one per declared input
};

// Applies the rule. `received[i]` is what was sent for `declared[i]`.
//
// Overwrites `*plan`; reusing it avoids allocations. Returns INVALID_ARGUMENT for an input that is
// absent without a default, has a dtype, rank or inner dimension other than declared, has a shape
// that no tensor can have, or has a number of rows that is neither 1 nor N. The message names all
// such inputs and, for rows, an input that has N. REQUIRES spans of the same size.
absl::Status PlanExpansion(absl::Span<const DeclaredInput> declared,
                           absl::Span<const ReceivedShape> received, ExpansionPlan* plan);

// Joins phrases up to a size that a gRPC status can carry, and counts the phrases that do not fit.
// gRPC sends the text in 8 KB of metadata and would replace a longer one with another error.
std::string JoinPhrases(const std::vector<std::string>& phrases);

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_EXPANSION_RULE_H_
