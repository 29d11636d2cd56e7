// The Open Inference Protocol over REST, under /v2 (docs/inference_protocol.md). Used only by
// model_api.cc.
#ifndef COLCAST_SERVER_REST_INFER_API_H_
#define COLCAST_SERVER_REST_INFER_API_H_

#include <memory>

#include "server/backend.h"
#include "server/http1/message.h"
#include "server/rest/model_api.h"

namespace colcast::http {

// Whether to read a request's body: if it runs a model that is served, or asks for the index.
bool WantsInferBody(const Backend& backend, const Request& head);

// Answers `exchange`, using the workers for a request that runs a model. `api` must outlive it.
void ServeInfer(ModelApi* api, std::shared_ptr<Exchange> exchange);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_INFER_API_H_
