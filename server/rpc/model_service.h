// tensorflow.serving.ModelService: which versions there are and in which state, and the change of
// what is served.
#ifndef COLCAST_SERVER_RPC_MODEL_SERVICE_H_
#define COLCAST_SERVER_RPC_MODEL_SERVICE_H_

#include <vector>

#include "server/models/model_manager.h"
#include "server/rpc/unary_service.h"

namespace colcast::rpc {

inline constexpr char kModelService[] = "tensorflow.serving.ModelService";

// HandleReloadConfigRequest answers when the models that are new have settled:
// ModelManager::Reload. `models` must outlive the methods.
std::vector<UnaryService::Method> ModelMethods(models::ModelManager* models);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_MODEL_SERVICE_H_
