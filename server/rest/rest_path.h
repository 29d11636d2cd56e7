// Parses the URLs of TF Serving's REST API and of the Open Inference Protocol's.
#ifndef COLCAST_SERVER_REST_REST_PATH_H_
#define COLCAST_SERVER_REST_REST_PATH_H_

#include <string_view>

#include "server/base/status.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

enum class RestMethod {
  // TF Serving's
  kStatus,
  kMetadata,
  kPredict,
  kClassify,
  kRegress,
  // the Open Inference Protocol's
  kServer,
  kLive,
  kReady,
  kModel,
  kModelReady,
  kInfer,
  kIndex,
};

struct RestCall {
  RestMethod method = RestMethod::kStatus;
  ModelSpec model;  // with a signature only if a query gives one
};

// GET  /v1/models/NAME[/versions/V|/labels/L][/metadata]
// POST /v1/models/NAME[/versions/V|/labels/L]:(predict|classify|regress)
//
// Segments other than NAME and L may be upper case. NAME and L are percent-encoded and may decode
// to anything, because they are only compared with names of models and labels. Returns
// INVALID_ARGUMENT for any other target that begins with /v1/, including one with a '?', as in TF
// Serving.
//
// GET  /v2, /v2/health/live, /v2/health/ready
// GET  /v2/models/NAME[/versions/V][?signature_name=S], /v2/models/NAME[/versions/V]/ready
// POST /v2/models/NAME[/versions/V]/infer, /v2/repository/index
//
// NAME, V and S may be percent-encoded; V is a number or a label. Returns NOT_FOUND for anything
// else.
Status ParseRestPath(std::string_view http_method, std::string_view target, RestCall* call);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_REST_PATH_H_
