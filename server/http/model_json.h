// Status and metadata of models -> JSON by protobuf's own rules, as TF Serving does.
#ifndef COLCAST_SERVER_HTTP_MODEL_JSON_H_
#define COLCAST_SERVER_HTTP_MODEL_JSON_H_

#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/inference/servable.h"
#include "server/models/model_status.h"

namespace colcast::http {

// A GetModelStatusResponse.
Status WriteModelStatus(const std::vector<models::VersionStatus>& versions, std::string* json);

// A GetModelMetadataResponse with the model's signatures.
Status WriteMetadata(const inference::Servable& servable, std::string* json);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_MODEL_JSON_H_
