// The Open Inference Protocol over REST, under /v2 (docs/inference_protocol.md). For model_api.cc.
#ifndef COLCAST_SERVER_HTTP_INFER_API_H_
#define COLCAST_SERVER_HTTP_INFER_API_H_

#include <memory>

#include "server/backend.h"
#include "server/http/model_api.h"
#include "server/http1/message.h"

namespace colcast::http {

// Whether the body of a request is worth reading: one to run a model that is served, or for the
// index.
bool WantsInferBody(const Backend& backend, const Request& head);

// Answers `exchange`; a request to run a model by the workers. `api` outlives it.
void ServeInfer(ModelApi* api, std::shared_ptr<Exchange> exchange);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_INFER_API_H_
