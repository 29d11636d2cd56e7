// Runs calls over REST.
#ifndef COLCAST_SERVER_REST_JSON_CODECS_H_
#define COLCAST_SERVER_REST_JSON_CODECS_H_

#include <chrono>
#include <cstddef>
#include <memory>

#include "server/backend.h"
#include "server/http1/message.h"
#include "server/rest/rest_path.h"

namespace colcast::http {

// Reads the body and runs the model on the workers. `call.method` is kPredict, kClassify or
// kRegress. `timeout` counts from now; 0 for none. `backend` must outlive the call.
void RunModel(const Backend& backend, std::chrono::milliseconds timeout, size_t max_body_bytes,
              const RestCall& call, std::shared_ptr<Exchange> exchange);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_JSON_CODECS_H_
