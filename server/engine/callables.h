// A signature's prepared callables, one for each set of outputs that requests ask for.
#ifndef COLCAST_SERVER_ENGINE_CALLABLES_H_
#define COLCAST_SERVER_ENGINE_CALLABLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/mapping/mapped_tables.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tsl/platform/threadpool.h"

namespace colcast::engine {

// All methods may be called from any thread. Making a callable takes as long as hundreds of runs,
// so only requests for the same outputs wait for it, and requests that keep asking for new sets of
// outputs share the callable of all outputs.
class Callables {
 public:
  // How many sets of outputs have callables of their own, in addition to the set of all outputs. A
  // request for any other set runs all outputs, until one of these sets has gone unused for kStale
  // runs and its callable is dropped.
  static constexpr size_t kMost = 8;
  static constexpr int64_t kStale = 1000;

  // `feeds` and `fetches` are tensor names in the graph. `session` must outlive this object.
  // `inter_op_parallelism`: see engine::Options.
  Callables(std::vector<std::string> feeds, std::vector<std::string> fetches,
            tensorflow::Session* session, int inter_op_parallelism);

  // Makes the callable of these outputs, given by position in `fetches`, unless it exists.
  absl::Status Prepare(const std::vector<int>& outputs);

  // Runs the graph with TensorFlow's floating-point settings, and sets `(*tensors)[i]` to the value
  // of `outputs[i]`. Returns DATA_LOSS if a mapped table changed before the run ended.
  absl::Status Run(const std::vector<tensorflow::Tensor>& feeds, const std::vector<int>& outputs,
                   std::vector<tensorflow::Tensor>* tensors);

 private:
  class Callable;

  tsl::thread::ThreadPool* Pool() const;
  std::shared_ptr<Callable> FindOrAdd(const std::vector<int>& outputs);
  std::shared_ptr<Callable> TakeStale(int64_t use);
  absl::Status Make(Callable* callable) const;

  const std::vector<std::string> feeds_;
  const std::vector<std::string> fetches_;
  tensorflow::Session* const session_;
  const int inter_op_parallelism_;
  const std::shared_ptr<Callable> all_;
  const tensorflow::core::RefCountPtr<MappedTables> mapped_;  // null if the session maps no table
  std::atomic<int64_t> uses_{0};
  std::shared_mutex mutex_;  // guards the map, not the callables in it
  std::map<std::vector<int>, std::shared_ptr<Callable>> some_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_CALLABLES_H_
