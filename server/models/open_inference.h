// What the Open Inference Protocol tells of the server and its models, over gRPC and over REST.
#ifndef COLCAST_SERVER_MODELS_OPEN_INFERENCE_H_
#define COLCAST_SERVER_MODELS_OPEN_INFERENCE_H_

#include "server/base/status.h"
#include "server/models/model_manager.h"
#include "server/protos/open_inference.pb.h"
#include "server/wire/predict_request.h"

namespace colcast::models {

::inference::ServerMetadataResponse DescribeServer();

// Of the signature that `spec` names, or the default one: its inputs and outputs by name, the keys
// of item tables among them, and -1 for each dimension that is not fixed. Errors as
// ModelManager::Find's; INVALID_ARGUMENT, with the signatures there are, if there is none of that
// name.
Status DescribeModel(const ModelManager& models, const ModelSpec& spec,
                     ::inference::ModelMetadataResponse* response);

// Each version of each model, in the order of their names and numbers. A model without one is
// there, too. `ready_only`: those that serve.
::inference::RepositoryIndexResponse IndexModels(const ModelManager& models, bool ready_only);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_OPEN_INFERENCE_H_
