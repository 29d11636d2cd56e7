#include "server/engine/rewrites/graph_choice.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace colcast::engine {
namespace {

constexpr double kMostLoss = 1.03;
constexpr double kLeastGain = 0.97;

double Average(const std::vector<Measurement>& measured, double Measurement::*figure) {
  double sum = 0;
  for (const Measurement& one : measured) sum += one.*figure;
  return sum / static_cast<double>(measured.size());
}

// Whether it may as well be chance.
bool IsNoGain(const std::vector<Measurement>& measured) {
  return Average(measured, &Measurement::share) + Average(measured, &Measurement::spread) >= 1;
}

bool LosesSomewhere(const std::vector<Measurement>& measured) {
  for (const Measurement& one : measured) {
    if (one.share > kMostLoss) return true;
  }
  return false;
}

// "0.71±0.02 of 0.35 ms at 20 rows, 0.80±0.01 of 0.93 ms at 100 rows"
std::string Figures(const std::vector<Measurement>& measured) {
  std::string text;
  for (const Measurement& one : measured) {
    absl::StrAppend(
        &text, text.empty() ? "" : ", ",
        absl::StrFormat("%.2f±%.2f of %.3g ms at %d row%s", one.share, one.spread,
                        one.original_seconds * 1e3, one.rows, one.rows == 1 ? "" : "s"));
  }
  return text.empty() ? "not measured" : text;
}

std::string Describe(const Candidate& candidate) {
  if (!candidate.proof.holds) return absl::StrCat("not proved: ", candidate.proof.says);
  return absl::StrCat(Figures(candidate.measured), "; ", candidate.proof.says);
}

// Of the small ones, or of the others; -1 if none is below `least` of the original's time.
int Fastest(const std::vector<Candidate>& candidates, bool small, double least) {
  int fastest = -1;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    if (one.is_small != small || !one.proof.holds || one.measured.empty()) continue;
    const double share = Average(one.measured, &Measurement::share);
    if (share >= least || LosesSomewhere(one.measured)) continue;
    if (!small && IsNoGain(one.measured)) continue;
    least = share;
    fastest = static_cast<int>(i);
  }
  return fastest;
}

}  // namespace

Choice ChooseGraph(const std::vector<Candidate>& candidates) {
  Choice choice;
  choice.candidate = Fastest(candidates, true, kMostLoss);
  if (choice.candidate < 0) choice.candidate = Fastest(candidates, false, kLeastGain);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool kept = static_cast<int>(i) == choice.candidate;
    absl::StrAppend(&choice.why, i == 0 ? "" : "; ", candidates[i].says,
                    kept ? " (" : " (not kept: ", Describe(candidates[i]), ")");
  }
  return choice;
}

}  // namespace colcast::engine
