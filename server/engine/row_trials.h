// Decides whether one-row inputs are repeated for a signature whose inputs no export recorded as
// rows.
//
// Where TensorFlow answers a request as it was sent, that is the answer. Inputs are repeated only
// if their rows alone make the signature refuse the request. A trial shows that: with made-up
// values, the signature refuses the inputs with one row beside others with two, and accepts all of
// them with two. The values of requests play no role, so an invalid value never looks like wrong
// rows, and a request never changes the answer to another.
#ifndef COLCAST_SERVER_ENGINE_ROW_TRIALS_H_
#define COLCAST_SERVER_ENGINE_ROW_TRIALS_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace colcast::engine {

class Signature;

// Any number of threads may use an object at once.
class RowTrials {
 public:
  // Whether the inputs at the positions `one_row` must be repeated for these outputs. The first
  // call with its arguments runs the signature twice.
  bool NeedRepeated(const Signature& signature, const std::vector<int>& one_row,
                    const std::vector<int>& outputs) const;

 private:
  using Case = std::pair<std::vector<int>, std::vector<int>>;
  mutable absl::Mutex mutex_;
  mutable std::map<Case, bool> results_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROW_TRIALS_H_
