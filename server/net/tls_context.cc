#include "server/net/tls_context.h"

#include <openssl/ssl.h>

#include <csignal>
#include <string_view>

namespace colcast::net {
namespace {

constexpr std::string_view kHttp2Only = "\2h2";
constexpr std::string_view kHttp2First = "\2h2\10http/1.1";

template <const std::string_view& kSpoken, int kOtherwise>
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  const bool found =
      SSL_select_next_proto(const_cast<unsigned char**>(chosen), size,
                            reinterpret_cast<const unsigned char*>(kSpoken.data()), kSpoken.size(),
                            offered, offered_size) == OPENSSL_NPN_NEGOTIATED;
  return found ? SSL_TLSEXT_ERR_OK : kOtherwise;
}

}  // namespace

Status MakeTlsContext(const TlsConfig& config, Protocols protocols, TlsContext* context) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  context->reset(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_set_options(context->get(), SSL_OP_NO_RENEGOTIATION);
  if (protocols == Protocols::kHttp2) {
    constexpr auto kChoose = ChooseProtocol<kHttp2Only, SSL_TLSEXT_ERR_ALERT_FATAL>;
    SSL_CTX_set_alpn_select_cb(context->get(), kChoose, nullptr);
  } else if (protocols == Protocols::kBoth) {
    constexpr auto kChoose = ChooseProtocol<kHttp2First, SSL_TLSEXT_ERR_NOACK>;
    SSL_CTX_set_alpn_select_cb(context->get(), kChoose, nullptr);
  }
  return UseTls(config, context->get());
}

}  // namespace colcast::net
