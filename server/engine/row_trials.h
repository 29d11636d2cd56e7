// Decides whether one-row inputs are repeated for a signature whose inputs no export recorded as
// rows.
//
// If TensorFlow answers a request as it was sent, the server returns that answer. It repeats inputs
// only if the signature refuses the request because of their rows. A trial with made-up values
// shows that: the signature refuses inputs with one row beside others with two, and accepts all of
// them with two. The values of requests play no role, so an invalid value never looks like wrong
// rows, and a request never changes the answer to another. If a signature's inputs are parts of a
// sparse or ragged tensor, none is repeated: their first dimensions count values, or they are lists
// of lengths or offsets.
#ifndef COLCAST_SERVER_ENGINE_ROW_TRIALS_H_
#define COLCAST_SERVER_ENGINE_ROW_TRIALS_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

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

// Whether an op, in the graph or in a function that it calls, uses an input as indices, shape, row
// splits or segment ids, or slices an input's rows, which is how differences of row splits are
// computed. The input may be cast or reshaped first, as long as it keeps its rows. An input that is
// only used as a sparse tensor's values does not count, because it may be a dense column.
bool TakesSparseParts(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& signature);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROW_TRIALS_H_
