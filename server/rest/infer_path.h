// Parses the Open Inference Protocol's REST URLs.
#ifndef COLCAST_SERVER_REST_INFER_PATH_H_
#define COLCAST_SERVER_REST_INFER_PATH_H_

#include <string_view>

#include "server/base/status.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

enum class InferMethod { kServer, kLive, kReady, kModel, kModelReady, kInfer, kIndex };

struct InferCall {
  InferMethod method = InferMethod::kServer;
  ModelSpec model;  // has a signature only if the query gives one
};

// GET  /v2, /v2/health/live, /v2/health/ready
// GET  /v2/models/NAME[/versions/V][?signature_name=S], /v2/models/NAME[/versions/V]/ready
// POST /v2/models/NAME[/versions/V]/infer, /v2/repository/index
//
// NAME, V and S may be percent-encoded; V is a number or a label. NOT_FOUND for anything else.
Status ParseInferPath(std::string_view http_method, std::string_view target, InferCall* call);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_INFER_PATH_H_
