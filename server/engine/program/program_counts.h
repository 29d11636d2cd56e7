// Which programs answered a signature's requests, and which failed: then another one answered.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_COUNTS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_COUNTS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/engine.h"

namespace colcast::engine {

enum class Program : uint8_t {
  kWhole,     // the signature itself
  kExact,     // the same with the user's part of the graph at one row
  kStages,    // a stage for each domain, then the candidates
  kRows,      // the rows that are not cached
  kGathered,  // the signature itself, with the row of each domain beside every candidate
};

// All methods may be called from any thread.
class ProgramCounts {
 public:
  // Counts a run. The first failure of each program is logged, with the signature's name.
  void Count(const std::string& signature, Program program, const absl::Status& status);

  // A number for each program and outcome that there was.
  std::vector<ProgramStats> stats(const std::string& signature) const;

 private:
  static constexpr int kPrograms = 5;
  static constexpr int kOutcomes = 2;

  std::array<std::array<std::atomic<int64_t>, kOutcomes>, kPrograms> counts_{};
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_COUNTS_H_
