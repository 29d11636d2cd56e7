// The gRPC methods that do not run a model: metadata, model management and health.
#ifndef COLCAST_SERVER_RPC_SERVICES_H_
#define COLCAST_SERVER_RPC_SERVICES_H_

#include <absl/base/thread_annotations.h>

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/backend.h"
#include "server/http2/call.h"
#include "server/models/model_manager.h"
#include "server/request_log/logging_config.h"

namespace colcast::rpc {

// tensorflow.serving.PredictionService, apart from the methods that run a model (wire_calls.h).

inline constexpr char kPredictionService[] = "tensorflow.serving.PredictionService";

// `backend` must outlive the methods.
http2::Methods PredictionMethods(const Backend& backend);

// inference.GRPCInferenceService: the Open Inference Protocol, version 2, used by clients of KServe
// and Triton (docs/wire.md).

inline constexpr char kInferenceService[] = "inference.GRPCInferenceService";

// The request header of ModelMetadata that names a signature other than the default.
inline constexpr char kSignatureHeader[] = "x-colcast-signature-name";

// `backend` must outlive the methods.
http2::Methods InferenceMethods(const Backend& backend);

// tensorflow.serving.ModelService: reports the states of versions, and changes which models are
// served.

inline constexpr char kModelService[] = "tensorflow.serving.ModelService";

// Who may change the configuration, and which request logs a change may turn on.
struct Reloads {
  enum class From { kAnywhere, kThisMachine, kNowhere };
  From from = From::kAnywhere;
  request_log::LogPlaces logs;
};

// HandleReloadConfigRequest answers when new models have loaded or failed to load (see
// ModelManager::Reload()). Clients not permitted to call it get PERMISSION_DENIED or UNIMPLEMENTED.
// `models` must outlive the methods.
http2::Methods ModelMethods(models::ModelManager* models, Reloads reloads);

// grpc.health.v1.Health: tells clients, once or continuously, whether the server serves.

inline constexpr char kHealthService[] = "grpc.health.v1.Health";

class HealthService {
 public:
  // Answers for `services`, where "" is the whole server, with NOT_SERVING until SetServing().
  explicit HealthService(std::vector<std::string> services) : services_(std::move(services)) {}

  // Applies to all services. May be called on any thread.
  void SetServing(bool serving);

  // This object must outlive all calls of the methods.
  http2::Methods Methods();

 private:
  class Watch;

  bool Knows(const std::string& service) const;
  bool serving();

  const std::vector<std::string> services_;
  std::mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_set<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_SERVICES_H_
