#include "server/engine/program/program_counts.h"

#include <string_view>

#include "absl/log/log.h"

namespace colcast::engine {
namespace {

constexpr std::string_view kNames[] = {"whole", "exact", "stages", "rows", "gathered"};
constexpr std::string_view kOutcomeNames[] = {"ok", "failed"};

}  // namespace

void ProgramCounts::Count(const std::string& signature, Program program,
                          const absl::Status& status) {
  const auto number = static_cast<size_t>(program);
  const int64_t before =
      counts_[number][status.ok() ? 0 : 1].fetch_add(1, std::memory_order_relaxed);
  if (status.ok() || before > 0) return;
  LOG(WARNING) << "signature \"" << signature << "\": its program \"" << kNames[number]
               << "\" failed for the first time: " << status.message();
}

std::vector<ProgramStats> ProgramCounts::stats(const std::string& signature) const {
  std::vector<ProgramStats> stats;
  for (size_t program = 0; program < counts_.size(); ++program) {
    for (size_t outcome = 0; outcome < counts_[program].size(); ++outcome) {
      const int64_t count = counts_[program][outcome].load(std::memory_order_relaxed);
      if (count > 0) stats.push_back({signature, kNames[program], kOutcomeNames[outcome], count});
    }
  }
  return stats;
}

}  // namespace colcast::engine
