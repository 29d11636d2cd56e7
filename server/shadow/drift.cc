#include "server/shadow/drift.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "server/wire/visit_number.h"

namespace colcast::shadow {

int64_t CountOf(const OutputColumn& output) {
  return std::accumulate(output.dims.begin(), output.dims.end(), int64_t{1}, std::multiplies<>());
}

KeptOutputs::KeptOutputs(const std::vector<OutputColumn>& outputs) {
  for (const OutputColumn& output : outputs) {
    auto kept = std::make_unique<Kept>();
    kept->name = output.name;
    kept->dims.assign(output.dims.begin(), output.dims.end());
    const int64_t count = CountOf(output);
    OutputColumn column = output;
    column.name = kept->name;
    column.dims = kept->dims;
    if (output.dtype == DT_STRING) {
      kept->strings.reserve(count);
      for (int64_t i = 0; i < count; ++i) {
        kept->strings.emplace_back(output.string_at(output.data, i));
      }
      column.data = kept->strings.data();
      column.string_at = [](const void* data, int64_t index) {
        return std::string_view(static_cast<const std::string*>(data)[index]);
      };
    } else {
      kept->bytes.assign(static_cast<const char*>(output.data), count * ElementSize(output.dtype));
      column.data = kept->bytes.data();
    }
    kept_.push_back(std::move(kept));
    columns_.push_back(column);
  }
}

namespace {

// Larger differences count as this one: an infinite one would make the histogram's sum useless.
constexpr double kLargestObserved = 1000;

constexpr int64_t kTop = 10;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double FromBfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

double FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double value = std::ldexp(fraction + (exponent == 0 ? 0 : 0x400), std::max(exponent, 1) - 25);
  if (exponent == 0x1f) value = fraction == 0 ? kInfinite : std::nan("");
  return bits >> 15 == 0 ? value : -value;
}

std::vector<double> Read(const OutputColumn& output, double (*from)(uint16_t)) {
  const auto* const values = static_cast<const uint16_t*>(output.data);
  std::vector<double> numbers(CountOf(output));
  std::transform(values, values + numbers.size(), numbers.begin(), from);
  return numbers;
}

// Returns nullopt for a dtype that is not numeric.
std::optional<std::vector<double>> Numbers(const OutputColumn& output) {
  if (output.dtype == DT_HALF) return Read(output, FromHalf);
  if (output.dtype == DT_BFLOAT16) return Read(output, FromBfloat16);
  std::vector<double> numbers;
  const bool is_number = VisitNumber(output.dtype, [&](auto type) {
    const auto* const values = static_cast<const decltype(type)*>(output.data);
    numbers.assign(values, values + CountOf(output));
  });
  return is_number ? std::optional(std::move(numbers)) : std::nullopt;
}

double Difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? kInfinite : difference;
}

bool SameBytes(const OutputColumn& a, const OutputColumn& b) {
  const int64_t count = CountOf(a);
  if (a.dtype != DT_STRING) {
    return count == 0 || std::memcmp(a.data, b.data, count * ElementSize(a.dtype)) == 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (a.string_at(a.data, i) != b.string_at(b.data, i)) return false;
  }
  return true;
}

// The rows of the ten candidates with the highest scores, ascending.
std::vector<int64_t> Top(const std::vector<double>& scores) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto score = [&scores](int64_t i) {
    return std::isnan(scores[i]) ? -kInfinite : scores[i];
  };
  std::partial_sort(order.begin(), order.begin() + kTop, order.end(), [&](int64_t a, int64_t b) {
    return score(a) > score(b) || (score(a) == score(b) && a < b);
  });
  order.resize(kTop);
  std::sort(order.begin(), order.end());
  return order;
}

OutputDrift CompareOutput(const OutputColumn& live, const OutputColumn& shadow) {
  OutputDrift drift;
  drift.name = live.name;
  const std::optional<std::vector<double>> a = Numbers(live);
  if (!a) {
    drift.difference = SameBytes(live, shadow) ? 0 : kInfinite;
    return drift;
  }
  const std::vector<double> b = *Numbers(shadow);
  for (size_t i = 0; i < b.size(); ++i) {
    drift.difference = std::max(drift.difference, Difference((*a)[i], b[i]));
  }
  const auto count = static_cast<int64_t>(b.size());
  if (count > kTop && live.dims[0] == count) drift.same_top10 = Top(*a) == Top(b);
  return drift;
}

bool SameForm(const OutputColumn& a, const OutputColumn& b) {
  return a.dtype == b.dtype &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end());
}

}  // namespace

Drift Compare(const std::vector<OutputColumn>& live, const std::vector<OutputColumn>& shadow) {
  Drift drift;
  for (const OutputColumn& output : live) {
    const auto same = std::find_if(shadow.begin(), shadow.end(), [&](const OutputColumn& other) {
      return other.name == output.name && SameForm(output, other);
    });
    if (same != shadow.end()) drift.outputs.push_back(CompareOutput(output, *same));
  }
  drift.other_form = drift.outputs.size() < std::max(live.size(), shadow.size());
  return drift;
}

const char* NotRunName(NotRun reason) {
  switch (reason) {
    case NotRun::kQueueFull:
      return "queue_full";
    case NotRun::kBusy:
      return "busy";
    case NotRun::kNoMemory:
      return "no_memory";
    case NotRun::kNotServed:
      return "not_served";
  }
  return "unknown";
}

void DriftCounts::CountNotRun(const std::string& model, NotRun reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++not_run_[model][static_cast<int>(reason)];
}

void DriftCounts::CountFailed(const Versions& versions, const Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  VersionCounts& counts = Find(versions).counts;
  ++counts.failed;
  counts.last_error = status.message;
}

void DriftCounts::CountCompared(const Versions& versions, const Drift& drift) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Pair& pair = Find(versions);
  ++(drift.other_form ? pair.counts.other_form : pair.counts.compared);
  for (const OutputDrift& output : drift.outputs) {
    Output& own = pair.outputs[std::string(output.name)];
    own.largest = std::max(own.largest, output.difference);
    const double billionths = std::min(output.difference, kLargestObserved) * 1e9;
    own.difference.Observe(static_cast<int64_t>(std::ceil(billionths)));
    if (output.same_top10) ++(*output.same_top10 ? own.same_top10 : own.other_top10);
  }
}

DriftCounts::Pair& DriftCounts::Find(const Versions& versions) {
  for (const auto& pair : pairs_) {
    if (pair->counts.versions == versions) return *pair;
  }
  if (pairs_.size() == kMaxVersions) pairs_.pop_front();
  pairs_.push_back(std::make_unique<Pair>());
  pairs_.back()->counts.versions = versions;
  return *pairs_.back();
}

std::map<std::string, std::array<int64_t, kNumNotRun>> DriftCounts::not_run() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return not_run_;
}

std::vector<VersionCounts> DriftCounts::versions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<VersionCounts> all;
  for (const auto& pair : pairs_) {
    VersionCounts& counts = all.emplace_back(pair->counts);
    for (const auto& [name, output] : pair->outputs) {
      counts.outputs.push_back({name, output.largest, output.difference.Snapshot(),
                                output.same_top10, output.other_top10});
    }
  }
  return all;
}

}  // namespace colcast::shadow
