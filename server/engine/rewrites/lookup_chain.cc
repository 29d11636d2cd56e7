#include "server/engine/rewrites/lookup_chain.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tsl/platform/fingerprint.h"

namespace colcast::engine {
namespace {

using Kind = IdStep::Kind;

struct Word {
  std::string_view name;
  Kind kind;
};
constexpr Word kWords[] = {{"hash", Kind::kHash},        {"mod", Kind::kMod},
                           {"at_least", Kind::kAtLeast}, {"at_most", Kind::kAtMost},
                           {"wrap", Kind::kWrap},        {"int32", Kind::kInt32},
                           {"hide", Kind::kHide}};

bool ParseStep(std::string_view word, IdStep* step) {
  const std::pair<std::string_view, std::string_view> parts = absl::StrSplit(word, '=');
  const auto* const found =
      std::find_if(std::begin(kWords), std::end(kWords),
                   [&](const Word& known) { return known.name == parts.first; });
  if (found == std::end(kWords)) return false;
  step->kind = found->kind;
  return absl::SimpleAtoi(parts.second, &step->value);
}

int64_t Bucket(std::string_view text, int64_t buckets) {
  return static_cast<int64_t>(tsl::Fingerprint64(text) % static_cast<uint64_t>(buckets));
}

int64_t HashDecimals(int64_t value, int64_t buckets) {
  char text[20];  // fits the smallest number, sign included
  char* const end = std::to_chars(text, text + sizeof(text), value).ptr;
  return Bucket({text, static_cast<size_t>(end - text)}, buckets);
}

template <typename Change>
void ForEach(absl::Span<int64_t> ids, const Change& change) {
  for (int64_t& id : ids) id = change(id);
}

void Apply(const IdStep& step, absl::Span<int64_t> ids) {
  const int64_t value = step.value;
  switch (step.kind) {
    case Kind::kHash:
      return ForEach(ids, [value](int64_t id) { return HashDecimals(id, value); });
    case Kind::kMod:
      return ForEach(ids, [value](int64_t id) {
        const int64_t rest = id % value;
        return rest < 0 ? rest + value : rest;
      });
    case Kind::kAtLeast:
      return ForEach(ids, [value](int64_t id) { return std::max(id, value); });
    case Kind::kAtMost:
      return ForEach(ids, [value](int64_t id) { return std::min(id, value); });
    case Kind::kWrap:
      return ForEach(ids, [value](int64_t id) { return id < 0 ? id + value : id; });
    case Kind::kInt32:
      return ForEach(ids, [](int64_t id) { return int64_t{static_cast<int32_t>(id)}; });
    case Kind::kHide:
      return;  // ids stay as they are
  }
}

}  // namespace

absl::StatusOr<LookupChain> LookupChain::Parse(std::string_view words) {
  LookupChain chain;
  for (const std::string_view word : absl::StrSplit(words, ' ')) {
    IdStep step;
    if (word == "gather") {
      chain.result = Result::kGather;
    } else if (word == "sum") {
      chain.result = Result::kSum;
    } else if (word == "mean") {
      chain.result = Result::kMean;
    } else if (ParseStep(word, &step)) {
      chain.steps.push_back(step);
    } else if (word != "copy") {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\" in \"", words, "\" is no step"));
    }
  }
  return chain;
}

std::string LookupChain::Words() const {
  if (result == Result::kCopy) return "copy";
  std::string words;
  for (const IdStep& step : steps) {
    const auto* const word = std::find_if(std::begin(kWords), std::end(kWords),
                                          [&](const Word& w) { return w.kind == step.kind; });
    absl::StrAppend(&words, word->name, "=", step.value, " ");
  }
  absl::StrAppend(&words, "gather");
  return words + (result == Result::kSum ? " sum" : result == Result::kMean ? " mean" : "");
}

bool LookupChain::Hides() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const IdStep& step) { return step.kind == Kind::kHide; });
}

void HashStrings(const tsl::tstring* strings, int64_t buckets, absl::Span<int64_t> ids) {
  std::string_view previous;
  int64_t bucket = Bucket(previous, buckets);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string_view text(strings[i].data(), strings[i].size());
    // A user's column repeats its value, so the last hash is reused.
    if (text != previous) bucket = Bucket(text, buckets);
    previous = text;
    ids[i] = bucket;
  }
}

void ApplySteps(absl::Span<const IdStep> steps, absl::Span<int64_t> ids,
                absl::Span<float> weights) {
  for (const IdStep& step : steps) {
    Apply(step, ids);
    if (step.kind != Kind::kHide) continue;
    for (size_t i = 0; i < ids.size(); ++i) weights[i] = ids[i] == step.value ? 0 : 1;
  }
}

}  // namespace colcast::engine
