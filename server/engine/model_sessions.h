// The TensorFlow sessions of one model.
#ifndef COLCAST_SERVER_ENGINE_MODEL_SESSIONS_H_
#define COLCAST_SERVER_ENGINE_MODEL_SESSIONS_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// How a session walks its graph. Where a request's operations run one after the other anyway, the
// executor made for that does it with less work an operation, but it refuses what TF1 models may
// have: Switch and Merge nodes, reference variables.
enum class Executor { kSingleThreaded, kDefault };

// TensorFlow optimizes and copies a session's whole graph for every callable. So each signature has
// a session of its own, with the graph that it needs; all share the devices, and with them the
// variables and tables, of a session that restored them.
class ModelSessions {
 public:
  // Restores variables and initializes tables. `shared`: signatures must share one session, because
  // their ops have a state that no name stands for. `maps`: large variables are mapped
  // (mapping/map_variables.h), not restored; REQUIRES !shared. `options` must outlive the sessions.
  static absl::StatusOr<std::unique_ptr<ModelSessions>> Restore(
      const std::string& directory, const tensorflow::MetaGraphDef& saved,
      const NeededGraphs& graphs, const Options& options, bool shared, bool maps);

  // A session that runs `graph`, as long as the model lives; the one session where it is shared.
  absl::StatusOr<tensorflow::Session*> Add(tensorflow::GraphDef graph, Executor executor);

  // That has the variables.
  tensorflow::Session* restored() const { return restored_.get(); }

  bool shared() const { return shared_; }

 private:
  ModelSessions(const Options& options, bool shared) : options_(options), shared_(shared) {}

  const Options& options_;
  const bool shared_;
  std::unique_ptr<tensorflow::Session> restored_;  // outlives the others, whose devices it owns
  std::mutex mutex_;
  std::vector<std::unique_ptr<tensorflow::Session>> added_;
};

// Whether an op of the graph has a state in its session, which others would not see: a random
// generator, a table without a name. The error is that of an op that is not registered.
absl::StatusOr<bool> HasSessionState(const tensorflow::GraphDef& graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MODEL_SESSIONS_H_
