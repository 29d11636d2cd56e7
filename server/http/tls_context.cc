#include "server/http/tls_context.h"

#include <boost/asio/ssl/context.hpp>

namespace colcast::http {

Status MakeTlsContext(const TlsConfig& config,
                      std::shared_ptr<boost::asio::ssl::context>* context) {
  auto made = std::make_shared<boost::asio::ssl::context>(boost::asio::ssl::context::tls_server);
  if (Status status = UseTls(config, made->native_handle()); !status.ok()) return status;
  *context = std::move(made);
  return OkStatus();
}

}  // namespace colcast::http
