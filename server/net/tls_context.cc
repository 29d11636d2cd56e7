#include "server/net/tls_context.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <csignal>
#include <string_view>
#include <utility>

#include "server/base/log.h"

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

// A resumed session involves no certificate check, so an expired certificate must be detected here.
SSL_TICKET_RETURN CheckResumed(SSL*, SSL_SESSION* session, const unsigned char*, size_t,
                               SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  const X509* const certificate = SSL_SESSION_get0_peer(session);
  if (certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;  // forces a full handshake, which refuses it
  }
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

// Each context has its own ticket keys, so that no session accepted under other authorities is
// resumed.
void AllowResumption(SSL_CTX* context) {
  constexpr unsigned char kId[] = "colcast";
  SSL_CTX_set_session_id_context(context, kId, sizeof(kId));
  // Clients store their sessions themselves.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_ticket_cb(context, nullptr, CheckResumed, nullptr);
}

}  // namespace

Status TlsContext::Create(const TlsConfig& config, Protocols protocols,
                          std::shared_ptr<TlsContext>* context) {
  auto made = std::make_shared<TlsContext>(config, protocols);
  Status status = made->Use(config);
  if (status.ok()) *context = std::move(made);
  return status;
}

Status TlsContext::Use(const TlsConfig& config) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  const std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION);
  if (protocols_ == Protocols::kHttp2) {
    constexpr auto kChoose = ChooseProtocol<kHttp2Only, SSL_TLSEXT_ERR_ALERT_FATAL>;
    SSL_CTX_set_alpn_select_cb(made.get(), kChoose, nullptr);
  } else if (protocols_ == Protocols::kBoth) {
    constexpr auto kChoose = ChooseProtocol<kHttp2First, SSL_TLSEXT_ERR_NOACK>;
    SSL_CTX_set_alpn_select_cb(made.get(), kChoose, nullptr);
  }
  AllowResumption(made.get());
  Status status = UseTls(config, made.get());
  if (!status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  current_ = made;
  return status;
}

void TlsContext::Reload() {
  TlsConfig before;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = config_;
  }
  const FileIdentity identity = IdentityOf(before.path);
  if (before.path.empty() || identity == before.identity) return;
  TlsConfig config;
  Status status = ReadTlsConfig(before.path, &config);
  if (status.ok()) status = Use(config);
  if (!status.ok()) {
    LogError("the new certificates are invalid, so the old ones stay in use: " + status.message);
    config = before;
    config.identity = identity;  // so that the error is logged only once
  } else {
    LogInfo("new connections use the certificates that " + before.path + " has now");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  config_ = std::move(config);
}

}  // namespace colcast::net
