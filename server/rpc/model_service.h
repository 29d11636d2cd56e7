// tensorflow.serving.ModelService: reports versions and their states, and changes what is served.
#ifndef COLCAST_SERVER_RPC_MODEL_SERVICE_H_
#define COLCAST_SERVER_RPC_MODEL_SERVICE_H_

#include "server/http2/call.h"
#include "server/models/model_manager.h"
#include "server/request_log/logging_config.h"

namespace colcast::rpc {

inline constexpr char kModelService[] = "tensorflow.serving.ModelService";

// Who may change the configuration, and which request logs a change may turn on.
struct Reloads {
  enum class From { kAnywhere, kThisMachine, kNowhere };
  From from = From::kAnywhere;
  request_log::LogPlaces logs;
};

// HandleReloadConfigRequest answers when new models have finished loading or failed:
// ModelManager::Reload(). PERMISSION_DENIED or UNIMPLEMENTED for clients that may not use it.
// `models` must outlive the methods.
http2::Methods ModelMethods(models::ModelManager* models, Reloads reloads);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_MODEL_SERVICE_H_
