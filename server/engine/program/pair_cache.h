// The outputs of pairs that were scored before, row by row (docs/states.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PAIR_CACHE_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PAIR_CACHE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/program/state_rows.h"
#include "server/engine/signature.h"
#include "server/states/key.h"
#include "server/states/state_cache.h"
#include "server/states/state_store.h"

namespace colcast::engine {

// All methods may be called from any thread.
class PairCache {
 public:
  // One request's rows, and what was found of them.
  struct Rows {
    std::vector<states::Key> keys;  // none: nothing is looked for and nothing kept
    std::vector<states::StateRef> found;
    std::vector<int64_t> missing;  // rising
  };

  // `memory`, null where nothing is to be kept, must outlive this object. `stretch`: that of
  // states::ReuseEstimator.
  PairCache(states::StateCache* memory, int64_t stretch) : store_("pair", memory, stretch) {}

  states::StateStore& store() { return store_; }
  const states::StateStore& store() const { return store_; }

  // Looks up `count` rows by the keys of what each of them reads, and by the outputs that are asked
  // for. Every one of `keys` has a key for each row, or one for all. REQUIRES store().on().
  void Find(int64_t count, absl::Span<const absl::Span<const states::Key>> keys,
            const std::vector<int>& outputs, Rows* rows);

  // From the outputs of the missing rows, none if there are none, to those of all rows; keeps what
  // is new. FAILED_PRECONDITION where they do not fit together. REQUIRES a row of `tensors` for
  // each that is missing.
  absl::Status Join(const Rows& rows, std::vector<tensorflow::Tensor>* tensors);

 private:
  states::StateStore store_;
  StateLayouts layouts_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PAIR_CACHE_H_
