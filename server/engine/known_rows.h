// The answers of rows that came before, for signatures whose rows do not depend on each other
// (docs/states.md).
#ifndef COLCAST_SERVER_ENGINE_KNOWN_ROWS_H_
#define COLCAST_SERVER_ENGINE_KNOWN_ROWS_H_

#include <vector>

#include "server/engine/part.h"
#include "server/engine/parts.h"
#include "server/engine/signature_runner.h"
#include "server/states/store_stats.h"
#include "serving_patches/signature_inputs.h"

namespace colcast::engine {

// All methods may be called from any thread.
class KnownRows {
 public:
  // Rows of a signature that declares an input with one row (a query) are pairs, all others items.
  // Both arguments must outlive this object.
  KnownRows(const SignatureRunner* runner, const StateMemories& memories);

  // Runs a request that has been planned (`plan.sources` and `plan.plan`): only the rows that are
  // not known. False if nothing is to be gained, or if something is wrong with it: the signature is
  // to run, and to say what. `outputs` are positions in the sorted aliases.
  bool Run(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
           RunResult* result);

  states::StoreStats stats() const { return part_.stats(); }

 private:
  Part part_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_KNOWN_ROWS_H_
