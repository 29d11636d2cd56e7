// What trials of a signature's graphs are fed with.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_TRIAL_FEEDS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_TRIAL_FEEDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

using Tensors = std::vector<tensorflow::Tensor>;

constexpr int64_t kFewTrialRows = 20;
constexpr int64_t kMostTrialBytes = int64_t{64} << 20;  // of feeds

// One tensor for each input of a signature, of so many rows.
struct TrialFeeds {
  int64_t rows = 1;
  Tensors tensors;
};

// Whether values of an input can be made up, and few rows of them fit into kMostTrialBytes.
bool CanBeMade(const DeclaredInput& input);

// The same rows again and again, or the first of them.
TrialFeeds WithRows(absl::Span<const DeclaredInput> inputs, const TrialFeeds& feeds, int64_t rows);

// Whole numbers of an input are below this; by alias.
using Ends = std::map<std::string, int64_t>;

// How many rows a domain has whose rows are not the candidates'.
struct DomainRows {
  int64_t user = 1;
  int64_t others = 4;
};

// Random feeds: integers and decimals in strings below the input's end, or `values` where it has
// none, the largest one first; floats around 0. Dimensions that are not declared are 3; a length is
// at most that. Each row of another domain has its number, and an index has no others.
TrialFeeds GenerateFeeds(absl::Span<const DeclaredInput> inputs, int64_t rows, int64_t values,
                         const Ends& ends = {}, const DomainRows& domains = {});

// Rows of inputs that are known to occur; by alias.
using KnownRows = std::map<std::string, tensorflow::Tensor>;

// Has inputs take rows that are known of them, again from the first one where there are too few.
void TakeKnown(absl::Span<const DeclaredInput> inputs, const KnownRows& known, TrialFeeds* feeds);

// The same feeds, a time for each index and each input of row numbers, whose first value is one
// beyond the domain's rows.
std::vector<TrialFeeds> WithRowsBeyond(absl::Span<const DeclaredInput> inputs,
                                       const TrialFeeds& feeds, const DomainRows& domains);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_TRIAL_FEEDS_H_
