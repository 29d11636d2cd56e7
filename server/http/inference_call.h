// One request to run a model over REST.
#ifndef COLCAST_SERVER_HTTP_INFERENCE_CALL_H_
#define COLCAST_SERVER_HTTP_INFERENCE_CALL_H_

#include <memory>

#include "server/backend.h"
#include "server/http/message.h"
#include "server/http/model_api.h"
#include "server/http/rest_path.h"

namespace colcast::http {

// Answers `exchange` from a worker: the body is inflated, parsed and answered there, so that large
// bodies keep no I/O thread busy. `call.method` is one that runs a model.
void RunInference(const Backend& backend, const ModelApiOptions& options, RestCall call,
                  std::shared_ptr<Exchange> exchange);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_INFERENCE_CALL_H_
