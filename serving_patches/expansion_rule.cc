#include "serving_patches/expansion_rule.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/types.h"

namespace colcast {
namespace {

// The dtype and shape that were sent for an input or, if it is absent, those of its default.
struct Effective {
  tensorflow::DataType dtype;
  absl::Span<const int64_t> dims;
};

Effective EffectiveOf(const DeclaredInput& declared, const ReceivedShape& received) {
  if (received.absent) return {declared.default_dtype, declared.default_dims};
  return {received.dtype, received.dims};
}

bool IsMissing(absl::Span<const DeclaredInput> declared, absl::Span<const ReceivedShape> received,
               size_t i) {
  if (!received[i].absent) return false;
  const int partner = declared[i].list_partner;
  return !declared[i].has_default || (partner >= 0 && !received[partner].absent);
}

// Whether a tensor can have these dimensions: none is negative, and the byte size does not
// overflow. Multiplies in order, as TensorShape does, which accepts [0,2^40,2^40] but not
// [2^40,2^40,0].
bool IsTensorShape(absl::Span<const int64_t> dims) {
  constexpr int64_t kMaxElementBytes = 32;
  constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max() / kMaxElementBytes;
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return false;
  }
  return elements <= kMaxElements;
}

// `alone` is true for a signature's only input, whose trailing dimensions of 1 do not matter.
bool Fits(const DeclaredInput& declared, const Effective& input, bool alone) {
  if (declared.dtype != tensorflow::DT_INVALID && declared.dtype != input.dtype) return false;
  if (!IsTensorShape(input.dims)) return false;
  if (declared.unknown_rank) return true;
  if (declared.dims.size() != input.dims.size() && !alone) return false;
  for (size_t d = 0; d < std::max(declared.dims.size(), input.dims.size()); ++d) {
    const int64_t expected = d < declared.dims.size() ? declared.dims[d] : 1;
    const int64_t actual = d < input.dims.size() ? input.dims[d] : 1;
    if (expected >= 0 && expected != actual) return false;
  }
  return true;
}

// A fast check that nearly all inputs pass. An input that fails it may still pass Fits().
bool FitsPlainly(const DeclaredInput& declared, const ReceivedShape& received) {
  constexpr size_t kMostDims = 3;
  constexpr int64_t kMostRows = 1 << 18;  // the product of three dimensions cannot overflow
  const size_t rank = received.dims.size();
  if (received.absent || declared.unknown_rank || declared.dtype != received.dtype ||
      declared.dims.size() != rank || rank > kMostDims) {
    return false;
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t dim = received.dims[d];
    if (dim < 0 || dim > kMostRows || (declared.dims[d] >= 0 && declared.dims[d] != dim)) {
      return false;
    }
  }
  return true;
}

// A batched input of unknown rank may be sent as a scalar, which has no rows.
bool HasRows(const DeclaredInput& declared, const Effective& input) {
  return declared.batched() && !input.dims.empty();
}

std::string Text(tensorflow::DataType dtype, absl::Span<const int64_t> dims) {
  return absl::StrCat(tensorflow::DataTypeString(dtype), " [", absl::StrJoin(dims, ","), "]");
}

std::string DeclaredText(const DeclaredInput& declared) {
  const std::string dtype = declared.dtype == tensorflow::DT_INVALID
                                ? "any dtype"
                                : tensorflow::DataTypeString(declared.dtype);
  if (declared.unknown_rank) return absl::StrCat(dtype, " of any shape");
  const auto dim_text = [](std::string* out, int64_t dim) {
    absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim));
  };
  return absl::StrCat(dtype, " [", absl::StrJoin(declared.dims, ",", dim_text), "]");
}

absl::Status MisfitError(absl::Span<const DeclaredInput> declared,
                         absl::Span<const ReceivedShape> received) {
  std::vector<std::string> phrases;
  for (size_t i = 0; i < declared.size(); ++i) {
    const Effective input = EffectiveOf(declared[i], received[i]);
    if (IsMissing(declared, received, i)) {
      const int partner = declared[i].has_default ? declared[i].list_partner : -1;
      const std::string why = partner < 0
                                  ? "has no default"
                                  : absl::StrCat("input \"", declared[partner].alias, "\" is not");
      phrases.push_back(absl::StrCat("input \"", declared[i].alias, "\" is missing and ", why,
                                     " (declared ", DeclaredText(declared[i]), ")"));
    } else if (!Fits(declared[i], input, declared.size() == 1)) {
      phrases.push_back(
          absl::StrCat(received[i].absent ? "the default of " : "", "input \"", declared[i].alias,
                       "\" is ", Text(input.dtype, input.dims),
                       IsTensorShape(input.dims) ? "" : ", a shape that no tensor has",
                       ", declared ", DeclaredText(declared[i])));
    }
  }
  return absl::InvalidArgumentError(JoinPhrases(phrases));
}

absl::Status RowsError(absl::Span<const DeclaredInput> declared,
                       absl::Span<const ReceivedShape> received, int64_t rows) {
  std::vector<std::string> phrases;
  absl::string_view example;
  for (size_t i = 0; i < declared.size(); ++i) {
    const Effective input = EffectiveOf(declared[i], received[i]);
    if (!HasRows(declared[i], input)) continue;
    if (input.dims[0] == rows) {
      if (example.empty()) example = declared[i].alias;
    } else if (input.dims[0] != 1) {
      phrases.push_back(absl::StrCat(received[i].absent ? "the default of " : "", "input \"",
                                     declared[i].alias, "\" has ", input.dims[0], " rows"));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(JoinPhrases(phrases), "; expected ",
                                                 rows == 1 ? "" : "1 or ", "N = ", rows,
                                                 ", the rows of input \"", example, "\""));
}

// The domain that an input indexes: "user" for int64 row_to_user [?]; otherwise "".
absl::string_view IndexedDomain(const DeclaredInput& input) {
  absl::string_view domain = input.alias;
  const bool is_index = absl::ConsumePrefix(&domain, "row_to_") &&
                        input.dtype == tensorflow::DT_INT64 && !input.unknown_rank &&
                        input.dims == Dims{-1};
  return is_index ? domain : "";
}

}  // namespace

std::string JoinPhrases(const std::vector<std::string>& phrases) {
  constexpr size_t kMaxBytes = 4000;
  std::string text;
  int left_off = 0;
  for (const std::string& phrase : phrases) {
    if (text.empty()) {
      text = phrase.size() > kMaxBytes ? phrase.substr(0, kMaxBytes) + "..." : phrase;
    } else if (text.size() + phrase.size() > kMaxBytes) {
      ++left_off;
    } else {
      absl::StrAppend(&text, "; ", phrase);
    }
  }
  if (left_off > 0) absl::StrAppend(&text, "; and ", left_off, " more");
  return text;
}

void FindOtherDomains(absl::Span<DeclaredInput> declared) {
  for (DeclaredInput& input : declared) {
    if (input.unknown_rank && declared.size() > 1) input.other_domain = true;
  }
  for (const DeclaredInput& index : declared) {
    const absl::string_view domain = IndexedDomain(index);
    if (domain.empty()) continue;
    const std::string prefix = absl::StrCat(domain, "_state/");
    for (DeclaredInput& input : declared) {
      if (absl::StartsWith(input.alias, prefix)) input.other_domain = true;
    }
  }
}

void PairLists(absl::Span<DeclaredInput> declared) {
  for (size_t i = 0; i < declared.size(); ++i) {
    absl::string_view list = declared[i].alias;
    if (!absl::ConsumeSuffix(&list, "/length") || declared[i].dtype != tensorflow::DT_INT64 ||
        declared[i].dims.size() != 1) {
      continue;
    }
    for (size_t j = 0; j < declared.size(); ++j) {
      const Dims& dims = declared[j].dims;
      if (declared[j].alias != list || dims.size() != 2 || dims[1] >= 0) continue;
      declared[i].list_partner = static_cast<int>(j);
      declared[j].list_partner = static_cast<int>(i);
    }
  }
}

absl::Status PlanExpansion(absl::Span<const DeclaredInput> declared,
                           absl::Span<const ReceivedShape> received, ExpansionPlan* plan) {
  int64_t rows = -1;
  int64_t fewest = std::numeric_limits<int64_t>::max();  // among inputs that do not have 1 row
  plan->actions.resize(declared.size());
  for (size_t i = 0; i < declared.size(); ++i) {
    const Effective input = EffectiveOf(declared[i], received[i]);
    const bool fits =
        FitsPlainly(declared[i], received[i]) ||
        (!IsMissing(declared, received, i) && Fits(declared[i], input, declared.size() == 1));
    if (!fits) return MisfitError(declared, received);
    InputAction& action = plan->actions[i];
    action = received[i].absent ? InputAction::kDefault : InputAction::kPass;
    if (!HasRows(declared[i], input)) continue;
    rows = std::max(rows, input.dims[0]);
    if (input.dims[0] != 1) fewest = std::min(fewest, input.dims[0]);
    if (input.dims[0] == 1 && !received[i].absent) action = InputAction::kExpand;
  }
  if (fewest < rows) return RowsError(declared, received, rows);
  plan->rows = rows < 0 ? 1 : rows;
  if (plan->rows == 1) {  // then nothing needs to be repeated
    std::replace(plan->actions.begin(), plan->actions.end(), InputAction::kExpand,
                 InputAction::kPass);
  }
  return absl::OkStatus();
}

}  // namespace colcast
