#include "server/engine/rewrites/graph_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr int kRepeats = 8;  // of a graph that may not repeat its bits
constexpr double kLeastOverlap = 0.9;

bool IsSameKind(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

bool HasSameBits(const Tensor& a, const Tensor& b) {
  if (!IsSameKind(a, b)) return false;
  if (a.dtype() == tensorflow::DT_STRING) {
    const auto one = a.flat<tensorflow::tstring>();
    const auto other = b.flat<tensorflow::tstring>();
    return std::equal(one.data(), one.data() + one.size(), other.data());
  }
  if (a.tensor_data() == b.tensor_data()) return true;
  if (a.dtype() != tensorflow::DT_FLOAT) return false;
  const auto one = a.flat<float>();
  const auto other = b.flat<float>();
  return std::equal(one.data(), one.data() + one.size(), other.data(), [](float x, float y) {
    return std::memcmp(&x, &y, sizeof(x)) == 0 || (std::isnan(x) && std::isnan(y));
  });
}

bool HaveSameBits(const Tensors& a, const Tensors& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), HasSameBits);
}

// Whether a graph whose answers vary gives one that the other gives, too.
bool CanAgree(const Trial& trial, const GraphRun& original, const GraphRun& rewritten,
              const HasTime& has_time) {
  std::vector<Tensors> answers = {trial.outputs}, others;
  for (int i = 0; i < kRepeats && has_time(2 * trial.seconds); ++i) {
    Tensors again, other;
    if (!original(trial.feeds.tensors, &again).ok()) return false;
    if (!rewritten(trial.feeds.tensors, &other).ok()) return false;
    answers.push_back(std::move(again));
    others.push_back(std::move(other));
  }
  const auto varies = [&](const Tensors& answer) { return !HaveSameBits(answer, answers[0]); };
  if (std::none_of(answers.begin(), answers.end(), varies)) return false;
  return std::any_of(others.begin(), others.end(), [&](const Tensors& other) {
    return std::any_of(answers.begin(), answers.end(),
                       [&](const Tensors& answer) { return HaveSameBits(other, answer); });
  });
}

Proof Fails(std::string says) { return {false, std::move(says)}; }

std::string Name(const Trial& trial) {
  return absl::StrCat("a ", trial.recorded ? "recorded" : "generated", " request of ",
                      trial.feeds.rows, " rows");
}

Proof NoTime(const Trial& trial) {
  return {false, absl::StrFormat("no time to run %s, %.3g s", Name(trial), trial.seconds), true};
}

bool IsFloating(const Tensor& tensor) {
  return tensor.dtype() == tensorflow::DT_FLOAT || tensor.dtype() == tensorflow::DT_DOUBLE;
}

double Value(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == tensorflow::DT_FLOAT ? tensor.flat<float>()(i)
                                                : tensor.flat<double>()(i);
}

// The largest difference of two tensors' first `count` elements, as a share of the largest of `a`.
// What is no number in one must be the same in both.
double Difference(const Tensor& a, const Tensor& b, int64_t count) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = Value(a, i), y = Value(b, i);
    if (std::isfinite(x) && std::isfinite(y)) {
      largest = std::max(largest, std::abs(x));
      difference = std::max(difference, std::abs(x - y));
    } else if (!(x == y || (std::isnan(x) && std::isnan(y)))) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return difference == 0 ? 0 : difference / std::max(largest, 1e-30);
}

// The largest of all outputs' differences; infinite where they are not of one kind.
double Difference(const Tensors& a, const Tensors& b) {
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!IsSameKind(a[i], b[i]) || (!IsFloating(a[i]) && !HasSameBits(a[i], b[i]))) {
      return std::numeric_limits<double>::infinity();
    }
    if (!IsFloating(a[i])) continue;
    difference = std::max(difference, Difference(a[i], b[i], a[i].NumElements()));
  }
  return difference;
}

// Of the rows with the `count` largest values, the share that two outputs have in common.
double Overlap(const Tensor& a, const Tensor& b, int64_t count) {
  const auto top = [count](const Tensor& scores) {
    std::vector<int64_t> rows(scores.NumElements());
    std::iota(rows.begin(), rows.end(), 0);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](int64_t x, int64_t y) { return Value(scores, x) > Value(scores, y); });
    rows.resize(count);
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  const std::vector<int64_t> one = top(a), other = top(b);
  std::vector<int64_t> both;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(count);
}

double LeastOverlap(const Trial& trial, const Tensors& outputs, int64_t count) {
  double least = 1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& scores = trial.outputs[i];
    if (!IsFloating(scores) || scores.NumElements() != trial.feeds.rows) continue;
    if (count < trial.feeds.rows) least = std::min(least, Overlap(scores, outputs[i], count));
  }
  return least;
}

// How far the rows of `fewer` are apart from the same rows of `more`.
double RowsDifference(const Tensors& fewer, int64_t rows, const Tensors& more, int64_t more_rows) {
  double difference = 0;
  for (size_t i = 0; i < fewer.size(); ++i) {
    const Tensor& few = fewer[i];
    if (!IsFloating(few) || few.dims() == 0 || few.dim_size(0) != rows) continue;
    if (more[i].dim_size(0) != more_rows ||
        few.NumElements() / rows != more[i].NumElements() / more_rows) {
      return std::numeric_limits<double>::infinity();
    }
    difference = std::max(difference, Difference(few, more[i], few.NumElements()));
  }
  return difference;
}

struct Figures {
  double difference = 0;
  double top10 = 1;
  double top100 = 1;
  double between_sizes = 0;
};

void CompareSizes(const std::vector<Trial>& trials, const std::vector<Tensors>& answers,
                  double tolerance, Figures* figures) {
  for (size_t more = 0; more < trials.size(); ++more) {
    for (size_t fewer = 0; fewer < more; ++fewer) {
      const Trial &few = trials[fewer], &many = trials[more];
      if (few.kind < 0 || few.kind != many.kind || few.feeds.rows == 0) continue;
      const double original =
          RowsDifference(few.outputs, few.feeds.rows, many.outputs, many.feeds.rows);
      if (original > tolerance) continue;  // its rows depend on each other
      figures->between_sizes =
          std::max(figures->between_sizes,
                   RowsDifference(answers[fewer], few.feeds.rows, answers[more], many.feeds.rows));
    }
  }
}

Proof Judge(const Figures& figures, size_t trials, double tolerance) {
  const bool holds = figures.difference <= tolerance && figures.between_sizes <= tolerance &&
                     figures.top10 >= kLeastOverlap && figures.top100 >= kLeastOverlap;
  return {holds,
          absl::StrFormat("differences up to %.2g, between sizes %.2g, of at most %.2g, top-10 "
                          "overlap %.2f, top-100 %.2f in %d requests",
                          figures.difference, figures.between_sizes, tolerance, figures.top10,
                          figures.top100, trials)};
}

}  // namespace

Proof ProveSameBits(const std::vector<Trial>& trials, const GraphRun& original,
                    const GraphRun& rewritten, const HasTime& has_time) {
  for (const Trial& trial : trials) {
    if (!has_time(trial.seconds)) return NoTime(trial);
    Tensors outputs;
    const absl::Status status = rewritten(trial.feeds.tensors, &outputs);
    if (!status.ok()) return Fails(absl::StrCat(Name(trial), " failed: ", status.message()));
    if (HaveSameBits(trial.outputs, outputs)) continue;
    if (!CanAgree(trial, original, rewritten, has_time)) {
      return {false, absl::StrCat(Name(trial), " has other bits"), !has_time(2 * trial.seconds)};
    }
  }
  return {!trials.empty(), absl::StrCat("the same bits in ", trials.size(), " requests")};
}

Proof ProveClose(const std::vector<Trial>& trials, const GraphRun& rewritten, double tolerance,
                 const HasTime& has_time) {
  Figures figures;
  std::vector<Tensors> answers;
  for (const Trial& trial : trials) {
    if (!has_time(trial.seconds)) return NoTime(trial);
    Tensors outputs;
    const absl::Status status = rewritten(trial.feeds.tensors, &outputs);
    if (!status.ok()) return Fails(absl::StrCat(Name(trial), " failed: ", status.message()));
    const double difference = Difference(trial.outputs, outputs);
    if (std::isinf(difference)) return Fails(absl::StrCat(Name(trial), " has another answer"));
    figures.difference = std::max(figures.difference, difference);
    figures.top10 = std::min(figures.top10, LeastOverlap(trial, outputs, 10));
    figures.top100 = std::min(figures.top100, LeastOverlap(trial, outputs, 100));
    answers.push_back(std::move(outputs));
  }
  CompareSizes(trials, answers, tolerance, &figures);
  Proof proof = Judge(figures, trials.size(), tolerance);
  proof.holds = proof.holds && !trials.empty();
  return proof;
}

void ProveRefusals(const std::vector<Refused>& refused, const GraphRun& rewritten, Proof* proof) {
  for (const Refused& one : refused) {
    if (!proof->holds) return;
    Tensors outputs;
    const absl::Status status = rewritten(one.feeds.tensors, &outputs);
    if (status.code() == one.code) continue;
    *proof = Fails(absl::StrCat("ids that are no rows: ", absl::StatusCodeToString(one.code),
                                " became ", absl::StatusCodeToString(status.code())));
  }
}

}  // namespace colcast::engine
