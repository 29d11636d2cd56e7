// Serves TF Serving's REST API.
#ifndef COLCAST_SERVER_REST_MODEL_API_H_
#define COLCAST_SERVER_REST_MODEL_API_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/http1/message.h"
#include "server/http1/router.h"
#include "server/inference/servable.h"
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
// Serving. Returns NOT_FOUND, saying what to use instead, for a target that begins with /v2.
Status ParseRestPath(std::string_view http_method, std::string_view target, RestCall* call);

// Reads the body and runs the model on the workers. `call.method` is kPredict, kClassify or
// kRegress. `timeout` counts from now; 0 for none. `backend` must outlive the call.
void RunModel(const Backend& backend, std::chrono::milliseconds timeout, size_t max_body_bytes,
              const RestCall& call, std::shared_ptr<Exchange> exchange);

// The metadata answers, written once per version. Thread-safe.
class MetadataAnswers {
 public:
  Status Find(const std::shared_ptr<const inference::Servable>& servable, Response* answer);

 private:
  std::mutex mutex_;
  std::map<std::weak_ptr<const inference::Servable>, Response, std::owner_less<>> answers_
      ABSL_GUARDED_BY(mutex_);
};

struct ModelApiOptions {
  // The time allowed from receipt of the request; 0 for no limit.
  std::chrono::milliseconds timeout{30'000};
  size_t max_body_bytes = 256 << 20;  // after decompression
  bool cors = false;                  // allows pages of any origin: --rest_api_enable_cors_support
};

// Answers everything under /v1/: status and metadata immediately, requests that run a model
// on the workers. The body of a request for a model that is not served is skipped. Refuses
// everything under /v2. `backend` must outlive the router.
void AddModelApi(const Backend& backend, const ModelApiOptions& options, Router* router);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_MODEL_API_H_
