#include "server/sender/client_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <csignal>

namespace colcast::sender {
namespace {

Status Wrong(const std::string& path) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return InvalidArgument(path, ": ", reason == nullptr ? "not usable" : reason);
}

}  // namespace

Status MakeContext(const ClientTls& tls, std::shared_ptr<SSL_CTX>* context) {
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  context->reset(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX* const made = context->get();
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(made, kHttp2, sizeof(kHttp2));
  X509_VERIFY_PARAM* const expected = SSL_CTX_get0_param(made);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, tls.server_name.c_str()) == 0) {
    X509_VERIFY_PARAM_set1_host(expected, tls.server_name.c_str(), 0);
  }
  ERR_clear_error();
  if (tls.root_certificates.empty()) {
    SSL_CTX_set_default_verify_paths(made);
  } else if (SSL_CTX_load_verify_file(made, tls.root_certificates.c_str()) != 1) {
    return Wrong(tls.root_certificates);
  }
  if (tls.private_key.empty()) return OkStatus();
  if (SSL_CTX_use_certificate_chain_file(made, tls.certificate_chain.c_str()) != 1) {
    return Wrong(tls.certificate_chain);
  }
  const char* const key = tls.private_key.c_str();
  return SSL_CTX_use_PrivateKey_file(made, key, SSL_FILETYPE_PEM) == 1 ? OkStatus()
                                                                       : Wrong(tls.private_key);
}

}  // namespace colcast::sender
