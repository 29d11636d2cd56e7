// tensorflow.serving.ModelService: which versions there are and in which state, and the change of
// what is served.
#ifndef COLCAST_SERVER_RPC_MODEL_SERVICE_H_
#define COLCAST_SERVER_RPC_MODEL_SERVICE_H_

#include "server/http2/call.h"
#include "server/models/model_manager.h"
#include "server/request_log/logging_config.h"

namespace colcast::rpc {

inline constexpr char kModelService[] = "tensorflow.serving.ModelService";

// Who may change the configuration, and which request logs that may turn on.
struct Reloads {
  enum class From { kAnywhere, kThisMachine, kNowhere };
  From from = From::kAnywhere;
  request_log::LogPlaces logs;
};

// HandleReloadConfigRequest answers when the models that are new have settled:
// ModelManager::Reload. PERMISSION_DENIED or UNIMPLEMENTED for those who may not ask for it.
// `models` must outlive the methods.
http2::Methods ModelMethods(models::ModelManager* models, Reloads reloads);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_MODEL_SERVICE_H_
