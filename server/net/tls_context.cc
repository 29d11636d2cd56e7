#include "server/net/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/figures.h"
#include "server/base/log.h"
#include "server/protos/ssl_config.pb.h"
#include "server/protos/text_proto.h"

namespace colcast::net {
namespace {

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* object) const { kFree(object); }
};
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;

using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX, SSL_CTX_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;

Memory Open(std::string_view text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The reason for the last OpenSSL error. Clears the queue, so that the next caller finds no old
// errors.
std::string Reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const text = ERR_reason_error_string(error);
  ERR_clear_error();
  return text == nullptr ? "unknown error" : text;
}

// Makes an encrypted key an error, because nobody can enter its password.
int NoPassword(char*, int, int, void*) { return -1; }

Status ParseKey(const std::string& pem, Key* key) {
  key->reset(PEM_read_bio_PrivateKey(Open(pem).get(), nullptr, NoPassword, nullptr));
  if (*key != nullptr) return OkStatus();
  return InvalidArgument("server_key is not an unencrypted PEM private key: ", Reason());
}

Status ParseCertificates(const char* field, const std::string& pem,
                         std::vector<Certificate>* certificates) {
  const Memory text = Open(pem);
  while (X509* one = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
    certificates->emplace_back(one);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = Reason();
  if (at_end && !certificates->empty()) return OkStatus();
  return InvalidArgument(field, " is not a list of PEM certificates: ", reason);
}

// Seconds since 1970.
int64_t SecondsOf(const ASN1_TIME* time) {
  tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return timegm(&parts);
}

Status SetClientAuthorities(const std::string& pem, SSL_CTX* context) {
  std::vector<Certificate> authorities;
  if (Status status = ParseCertificates("custom_ca", pem, &authorities); !status.ok()) {
    return status;
  }
  for (const Certificate& authority : authorities) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    SSL_CTX_add_client_CA(context, authority.get());
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return OkStatus();
}

}  // namespace

Status UseTls(const TlsConfig& config, SSL_CTX* context) {
  ERR_clear_error();
  Key key;
  if (Status status = ParseKey(config.key, &key); !status.ok()) return status;
  std::vector<Certificate> chain;
  if (Status status = ParseCertificates("server_cert", config.certificates, &chain); !status.ok()) {
    return status;
  }
  if (SSL_CTX_use_certificate(context, chain[0].get()) != 1) {
    return InvalidArgument("server_cert cannot be used: ", Reason());
  }
  for (size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return InvalidArgument("server_key is not the key of server_cert: ", Reason());
  }
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (config.client_authorities.empty()) return OkStatus();
  return SetClientAuthorities(config.client_authorities, context);
}

Status ReadTlsConfig(const std::string& path, TlsConfig* config) {
  const FileIdentity identity = IdentityOf(path);
  tensorflow::serving::SSLConfig proto;
  if (Status status = ReadTextProto(path, &proto); !status.ok()) return status;
  if (proto.server_key().empty()) return InvalidArgument(path, ": server_key is missing");
  if (proto.server_cert().empty()) return InvalidArgument(path, ": server_cert is missing");
  if (proto.client_verify() && proto.custom_ca().empty()) {
    return InvalidArgument(path,
                           ": client_verify needs custom_ca, the authorities that clients' "
                           "certificates are checked against");
  }
  *config = {proto.server_key(), proto.server_cert(),
             proto.client_verify() ? proto.custom_ca() : "", path, identity};
  const Context trial(SSL_CTX_new(TLS_server_method()));
  Status status = UseTls(*config, trial.get());
  config->valid_until = std::numeric_limits<int64_t>::max();
  if (!status.ok()) {
    status.message = path + ": " + status.message;
    return status;
  }
  const auto limit = [config](const X509* each) {
    config->valid_from = std::max(config->valid_from, SecondsOf(X509_get0_notBefore(each)));
    config->valid_until = std::min(config->valid_until, SecondsOf(X509_get0_notAfter(each)));
  };
  limit(SSL_CTX_get0_certificate(trial.get()));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(trial.get(), &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) limit(sk_X509_value(chain, i));
  return status;
}

namespace {

int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};  // `chosen` will point into it
  const bool found =
      SSL_select_next_proto(const_cast<unsigned char**>(chosen), size, kHttp2, sizeof(kHttp2),
                            offered, offered_size) == OPENSSL_NPN_NEGOTIATED;
  return found ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// A resumed session involves no certificate check, so an expired certificate must be detected here.
SSL_TICKET_RETURN CheckResumed(SSL*, SSL_SESSION* session, const unsigned char*, size_t,
                               SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  const X509* const certificate = SSL_SESSION_get0_peer(session);
  if (certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;  // forces a full handshake, which fails
  }
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

// Each context has its own ticket keys, so a session accepted under other authorities cannot be
// resumed.
void AllowResumption(SSL_CTX* context) {
  constexpr unsigned char kId[] = "colcast";
  SSL_CTX_set_session_id_context(context, kId, sizeof(kId));
  // Clients store their sessions themselves.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_ticket_cb(context, nullptr, CheckResumed, nullptr);
}

Status CheckValidNow(const TlsConfig& config) {
  const int64_t now = time(nullptr);
  if (config.path.empty() || (config.valid_from <= now && now < config.valid_until)) {
    return OkStatus();
  }
  const bool has_ended = now >= config.valid_until;
  const time_t at = has_ended ? config.valid_until : config.valid_from;
  tm parts{};
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&at, &parts));
  return FailedPrecondition(config.path, ": a certificate of server_cert ",
                            has_ended ? "has expired, at " : "is not valid before ", text);
}

Status MakeContext(const TlsConfig& config, Protocol protocol, std::shared_ptr<SSL_CTX>* made) {
  made->reset(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_set_options(made->get(), SSL_OP_NO_RENEGOTIATION);
  if (protocol == Protocol::kHttp2) SSL_CTX_set_alpn_select_cb(made->get(), ChooseHttp2, nullptr);
  AllowResumption(made->get());
  return UseTls(config, made->get());
}

}  // namespace

Status TlsContext::Create(const TlsConfig& config, std::shared_ptr<TlsContext>* context) {
  auto made = std::make_shared<TlsContext>(config);
  Status status = made->Use(config);
  if (!status.ok()) return status;
  const Status valid = CheckValidNow(config);
  if (!valid.ok()) LogWarning(valid.message + "; clients will refuse it");
  *context = std::move(made);
  return status;
}

Status TlsContext::Use(const TlsConfig& config) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  std::array<std::shared_ptr<SSL_CTX>, 2> made;
  Status status = MakeContext(config, Protocol::kHttp1, &made[0]);
  if (status.ok()) status = MakeContext(config, Protocol::kHttp2, &made[1]);
  if (!status.ok()) return status;
  figures.certificates_end = config.valid_until;
  const std::lock_guard<std::mutex> lock(mutex_);
  current_ = std::move(made);
  return status;
}

void TlsContext::Reload() {
  const std::lock_guard<std::mutex> lock(reload_mutex_);
  if (config_.path.empty()) return;
  const bool is_due = retry_at_ != 0 && time(nullptr) >= retry_at_;
  const FileIdentity identity = IdentityOf(config_.path);
  if (identity == config_.identity && !is_due) return;
  TlsConfig config;
  Status status = ReadTlsConfig(config_.path, &config);
  if (status.ok()) status = CheckValidNow(config);
  retry_at_ = !status.ok() && config.valid_from > time(nullptr) ? config.valid_from : 0;
  if (status.ok()) status = Use(config);
  if (status.ok()) {
    LogInfo("new connections use the new certificates of " + config_.path);
    config_ = std::move(config);
  } else {
    ++figures.refused_certificates;
    LogWarning("the new certificates are invalid, so the old ones stay in use: " + status.message);
  }
  config_.identity = identity;  // so that an error is logged only once
}

}  // namespace colcast::net
