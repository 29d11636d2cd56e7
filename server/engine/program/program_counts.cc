#include "server/engine/program/program_counts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"

namespace colcast::engine {

ProgramCounts::ProgramCounts(std::string signature, const std::vector<std::string_view>& programs)
    : signature_(std::move(signature)) {
  for (const std::string_view name : programs) programs_.emplace_back(name);
}

void ProgramCounts::Count(size_t program, const absl::Status& status) {
  Counts& counts = programs_[program];
  const int64_t before =
      counts.by_outcome[status.ok() ? 0 : 1].fetch_add(1, std::memory_order_relaxed);
  if (status.ok() || before > 0) return;
  LogWarning(absl::StrCat("signature \"", signature_, "\": its program \"", counts.name,
                          "\" failed for the first time: ", status.message()));
}

std::vector<ProgramStats> ProgramCounts::stats() const {
  constexpr std::string_view kOutcomes[] = {"ok", "failed"};
  std::vector<ProgramStats> stats;
  for (const Counts& counts : programs_) {
    for (size_t outcome = 0; outcome < counts.by_outcome.size(); ++outcome) {
      const int64_t count = counts.by_outcome[outcome].load(std::memory_order_relaxed);
      if (count > 0) stats.push_back({signature_, counts.name, kOutcomes[outcome], count});
    }
  }
  return stats;
}

}  // namespace colcast::engine
