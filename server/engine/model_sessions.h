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
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Shares one session's devices, and so its variables and tables, with another.
class SharedDevices final : public tensorflow::DeviceMgr {
 public:
  // `devices` must outlive this object.
  explicit SharedDevices(const tensorflow::DeviceMgr& devices) : devices_(devices) {}

  void ListDeviceAttributes(std::vector<tensorflow::DeviceAttributes>* devices) const override {
    devices_.ListDeviceAttributes(devices);
  }
  std::vector<tensorflow::Device*> ListDevices() const override { return devices_.ListDevices(); }
  std::string DebugString() const override { return devices_.DebugString(); }
  std::string DeviceMappingString() const override { return devices_.DeviceMappingString(); }
  absl::Status LookupDevice(absl::string_view name, tensorflow::Device** device) const override {
    return devices_.LookupDevice(name, device);
  }
  bool ContainsDevice(int64_t incarnation) const override {
    return devices_.ContainsDevice(incarnation);
  }
  void ClearContainers(absl::Span<const std::string> containers) const override {
    devices_.ClearContainers(containers);
  }
  int NumDeviceType(const std::string& type) const override { return devices_.NumDeviceType(type); }
  int NumDevices() const override { return devices_.NumDevices(); }
  tensorflow::Device* HostCPU() const override { return devices_.HostCPU(); }

 private:
  const tensorflow::DeviceMgr& devices_;
};

// How a session executes its graph. Where a request's operations run one after the other anyway,
// the single-threaded executor does less work per operation, but it refuses constructs of TF1
// models: Switch and Merge nodes, reference variables. It also accepts conditions that are not
// scalars, so graphs with conditions run on the default executor, which refuses them.
enum class Executor { kSingleThreaded, kDefault };

// Whether the graph or one of its functions has an If, Case or While that TensorFlow's default
// executor turns into Switch and Merge, which check the condition.
bool HasConditions(const tensorflow::GraphDef& graph);

// TensorFlow optimizes and copies a session's whole graph for every callable. Therefore each
// signature has its own session with only the graph that it needs. All of them share the devices,
// and so the variables and tables, of the session that restored them.
class ModelSessions {
 public:
  // Restores variables and initializes tables. With `shared`, all signatures use one session,
  // because their ops have state that no name identifies. With `maps`, large variables are mapped
  // (mapping/map_variables.h) instead of restored; REQUIRES !shared. `options` must outlive this
  // object.
  static absl::StatusOr<std::unique_ptr<ModelSessions>> Restore(
      const std::string& directory, const tensorflow::MetaGraphDef& saved,
      const NeededGraphs& graphs, const Options& options, bool shared, bool maps);

  // A session that runs `graph`, with the default executor if it has conditions, and lives as long
  // as the model. Always the same session if the signatures share one.
  absl::StatusOr<tensorflow::Session*> Add(const tensorflow::GraphDef& graph, Executor executor);

  // The session that restored the variables.
  tensorflow::Session* restored() const { return restored_.get(); }

  bool shared() const { return shared_; }

 private:
  ModelSessions(const Options& options, bool shared) : options_(options), shared_(shared) {}

  const Options& options_;
  const bool shared_;
  // Must outlive the other sessions, which use its devices.
  std::unique_ptr<tensorflow::Session> restored_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<tensorflow::Session>> added_;
};

// Returns the first op whose state other sessions would not see, such as a random generator or a
// table without a name, followed by its node; empty if there is none. Returns TensorFlow's error
// for an unregistered op.
absl::StatusOr<std::string> SessionStateIn(const tensorflow::GraphDef& graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MODEL_SESSIONS_H_
