// Describes in a few words how a feature's output is computed from its column's values.
// A rewrite writes the words; the grouped lookup parses them.
//
//   copy                    the column's own values
//   mod=1000 gather         the table's row number (value mod 1000)
//   hash=1000 gather        the row that a string hashes to; an integer hashes as its decimal text
//   wrap=5000 gather sum    the sum of the rows for a list of values
//   hide=0 gather mean      the mean of these rows; rows for a value of 0 have weight 0
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_CHAIN_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_CHAIN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tsl/platform/tstring.h"

namespace colcast::engine {

// A step that changes an id exactly like TensorFlow's op. `value` is the modulus, the bound or the
// count.
struct IdStep {
  enum class Kind {
    kHash,     // StringToHashBucketFast; integers pass through AsString first
    kMod,      // FloorMod by a positive number
    kAtLeast,  // Maximum
    kAtMost,   // Minimum
    kWrap,     // a negative id counts from the end of `value` rows
    kInt32,    // Cast to int32; `value` is 0
    kHide,     // an id equal to `value` stays, but has weight 0 in its list's sum or mean
  };
  Kind kind;
  int64_t value;
};

struct LookupChain {
  // A mean is the sum divided by the number of ids that are not hidden, at least 1.
  enum class Result { kCopy, kGather, kSum, kMean };

  // Reads what Words() wrote. Returns INVALID_ARGUMENT for an unknown word.
  static absl::StatusOr<LookupChain> Parse(std::string_view words);
  std::string Words() const;

  bool Hides() const;  // whether a step hides ids

  std::vector<IdStep> steps;
  Result result = Result::kCopy;
};

// Sets `ids` to the hash bucket of each string.
void HashStrings(const tsl::tstring* strings, int64_t buckets, absl::Span<int64_t> ids);

// Applies the steps to each id. `weights`, one per id and initially 1, become 0 for hidden ids;
// they may be empty if no step hides ids.
void ApplySteps(absl::Span<const IdStep> steps, absl::Span<int64_t> ids,
                absl::Span<float> weights = {});

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_CHAIN_H_
