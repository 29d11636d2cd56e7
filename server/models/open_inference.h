// Messages that describe models: the Open Inference Protocol's metadata, and
// GetModelStatusResponse.
#ifndef COLCAST_SERVER_MODELS_OPEN_INFERENCE_H_
#define COLCAST_SERVER_MODELS_OPEN_INFERENCE_H_

#include "server/base/status.h"
#include "server/models/model_manager.h"
#include "server/protos/open_inference.pb.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::models {

// Describes the signature named in `spec`, or the default one: its inputs and outputs, sorted by
// name and including the keys of item tables, with -1 for each dimension that is not fixed. Returns
// the errors of ServingTable::Find(), or INVALID_ARGUMENT, listing the signatures, if the name is
// unknown.
Status DescribeModel(const ModelManager& models, const ModelSpec& spec,
                     ::inference::ModelMetadataResponse* response);

// The versions that `spec` selects. Returns the errors of ModelManager::GetStatus().
Status DescribeVersions(const ModelManager& models, const ModelSpec& spec,
                        tensorflow::serving::GetModelStatusResponse* response);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_OPEN_INFERENCE_H_
