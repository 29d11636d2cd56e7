// Counts the programs that answered a signature's requests, and those that failed before another
// one answered.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_COUNTS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_COUNTS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/engine.h"

namespace colcast::engine {

// All methods may be called from any thread.
class ProgramCounts {
 public:
  // `programs`: their names, which must be string literals.
  ProgramCounts(std::string signature, const std::vector<std::string_view>& programs);

  // Counts a run of a program, given by position. Logs each program's first failure, with the
  // signature's name.
  void Count(size_t program, const absl::Status& status);

  // One count for each program and outcome that has occurred.
  std::vector<ProgramStats> stats() const;

 private:
  struct Counts {
    explicit Counts(std::string_view name) : name(name) {}
    const std::string_view name;
    std::array<std::atomic<int64_t>, 2> by_outcome{};
  };

  const std::string signature_;
  std::deque<Counts> programs_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_COUNTS_H_
