// Answers rows from a cache of earlier answers, for signatures whose rows are independent
// (docs/stages.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_ROWS_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_ROWS_PROGRAM_H_

#include <string_view>
#include <vector>

#include "server/engine/program/programs.h"
#include "server/engine/program/stage.h"
#include "server/states/state_cache.h"

namespace colcast::engine {

// Runs only the rows that are not in the cache.
class RowsProgram final : public Program {
 public:
  // Caches nothing for a signature with a one-row input, such as a query. `memory` may be null.
  // Both arguments must outlive the program.
  RowsProgram(const Signature* signature, states::StateCache* memory);

  std::string_view name() const override { return "rows"; }
  bool Accepts(const Batch& batch) const override;
  std::vector<int> own_lengths() const override { return stage_.lengths(); }
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  states::StoreStats stats() const { return stage_.stats(); }

 private:
  Stage stage_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_ROWS_PROGRAM_H_
