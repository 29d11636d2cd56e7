// Parses the URLs of TF Serving's REST API.
#ifndef COLCAST_SERVER_REST_REST_PATH_H_
#define COLCAST_SERVER_REST_REST_PATH_H_

#include <string_view>

#include "server/base/status.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

enum class RestMethod {
  kStatus,
  kMetadata,
  kPredict,
  kClassify,
  kRegress,
};

struct RestCall {
  RestMethod method = RestMethod::kStatus;
  ModelSpec model;  // without a signature
};

// GET  /v1/models/NAME[/versions/V|/labels/L][/metadata]
// POST /v1/models/NAME[/versions/V|/labels/L]:(predict|classify|regress)
//
// Segments other than NAME and L may be upper case. NAME and L are percent-encoded and may decode
// to anything, because they are only compared with names of models and labels. Returns
// INVALID_ARGUMENT for any other target that begins with /v1/, including one with a '?', as in TF
// Serving. Returns NOT_FOUND, with what to do instead, for a target that begins with /v2.
Status ParseRestPath(std::string_view http_method, std::string_view target, RestCall* call);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_REST_PATH_H_
