// TLS for the HTTP server.
#ifndef COLCAST_SERVER_HTTP_TLS_CONTEXT_H_
#define COLCAST_SERVER_HTTP_TLS_CONTEXT_H_

#include <memory>

#include "server/http/http_server.h"
#include "server/tls_config.h"
#include "server/wire/status.h"

namespace colcast::http {

// What HttpServer::Options::tls takes. Errors as UseTls's.
Status MakeTlsContext(const TlsConfig& config, std::shared_ptr<boost::asio::ssl::context>* context);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_TLS_CONTEXT_H_
