// Measures the expansion rule, which runs in every request: 150 user features, 60 item features,
// N = 500.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serving_patches/expansion_rule.h"

namespace colcast {
namespace {

void BM_PlanExpansion(benchmark::State& state) {
  static constexpr int64_t kOneRow = 1;
  static constexpr int64_t kRows = 500;
  std::vector<DeclaredInput> declared(210);
  std::vector<ReceivedShape> received;
  for (int i = 0; i < 210; ++i) {
    declared[i].alias = absl::StrCat("feature_", i);
    declared[i].dtype = tensorflow::DT_FLOAT;
    declared[i].dims = {-1};
    const int64_t& rows = i < 150 ? kOneRow : kRows;
    received.push_back({false, tensorflow::DT_FLOAT, absl::MakeConstSpan(&rows, 1)});
  }
  ExpansionPlan plan;
  for (auto _ : state) {
    if (!PlanExpansion(declared, received, &plan).ok()) state.SkipWithError("refused");
  }
}
BENCHMARK(BM_PlanExpansion);

}  // namespace
}  // namespace colcast
