// Parses TF Serving's REST URLs.
#ifndef COLCAST_SERVER_REST_REST_PATH_H_
#define COLCAST_SERVER_REST_REST_PATH_H_

#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

// kInfer belongs to the Open Inference Protocol (infer_path.h).
enum class RestMethod { kStatus, kMetadata, kPredict, kClassify, kRegress, kInfer };

struct RestCall {
  RestMethod method = RestMethod::kStatus;
  ModelSpec model;  // without a signature, which is in the body
};

// GET  /v1/models/NAME[/versions/V|/labels/L][/metadata]
// POST /v1/models/NAME[/versions/V|/labels/L]:(predict|classify|regress)
//
// The path's letters may be upper case. NAME and L are percent-encoded and may decode to anything,
// because they are only compared with names of models and labels. INVALID_ARGUMENT for any other
// target, including one with a '?', as in TF Serving.
Status ParseRestPath(std::string_view http_method, std::string_view target, RestCall* call);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_REST_PATH_H_
