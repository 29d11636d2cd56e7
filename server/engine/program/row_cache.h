// The answers of rows that came before, for signatures whose rows do not depend on each other
// (docs/states.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_ROW_CACHE_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_ROW_CACHE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/program/stage.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/signature.h"
#include "server/states/store_stats.h"
#include "serving_patches/signature_inputs.h"

namespace colcast::engine {

// All methods may be called from any thread.
class RowCache {
 public:
  // Rows of a signature that declares an input with one row (a query) are pairs, all others items.
  // Both arguments must outlive this object.
  RowCache(const Signature* signature, const StateCaches& memories);

  // Runs a planned request: only the rows that are not known. False if nothing is to be gained, and
  // an error if the signature fails: it is to run whole.
  absl::StatusOr<bool> Run(const PlannedRequest& planned, RunResult* result);

  states::StoreStats stats() const { return stage_.stats(); }

 private:
  Stage stage_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_ROW_CACHE_H_
