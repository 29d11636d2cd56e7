// For tests: a thread that polls, keys and certificates, and both ends of a TLS connection.
#ifndef COLCAST_SERVER_NET_TESTING_H_
#define COLCAST_SERVER_NET_TESTING_H_

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::net {

class PollingThread {
 public:
  explicit PollingThread(Poller* poller)
      : poller_(poller), thread_([this] {
          while (!ended_) poller_->Poll(scheduling::Clock::time_point::max());
        }) {}
  ~PollingThread() {
    ended_ = true;
    poller_->Wake();
    thread_.join();
  }

 private:
  Poller* const poller_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Both ends of a connection, without TLS.
inline std::array<int, 2> ConnectedSockets(int flags = SOCK_NONBLOCK) {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends.data()), 0);
  return ends;
}

template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

struct Identity {
  Owned<EVP_PKEY> key;
  Owned<X509> certificate;
};

inline void SetName(X509_NAME* name, const char* text) {
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text),
                             -1, -1, 0);
}

// Makes a certificate signed by `issuer` or, if that is null, by itself. It is valid from
// `seconds_until_valid` on, for `seconds_valid`.
inline Identity MakeIdentity(const char* name, int seconds_valid, const Identity* issuer,
                             int seconds_until_valid = 0) {
  Identity made{{EVP_EC_gen("P-256"), EVP_PKEY_free}, {X509_new(), X509_free}};
  const Identity& signer = issuer == nullptr ? made : *issuer;
  X509* const certificate = made.certificate.get();
  X509_gmtime_adj(X509_getm_notBefore(certificate), seconds_until_valid);
  X509_gmtime_adj(X509_getm_notAfter(certificate), seconds_until_valid + seconds_valid);
  X509_set_pubkey(certificate, made.key.get());
  SetName(X509_get_subject_name(certificate), name);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get()));
  X509_sign(certificate, signer.key.get(), EVP_sha256());
  return made;
}

inline std::string Pem(const Identity& one, bool key) {
  const Owned<BIO> text(BIO_new(BIO_s_mem()), [](BIO* bio) { BIO_free(bio); });
  if (key) {
    PEM_write_bio_PrivateKey(text.get(), one.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  } else {
    PEM_write_bio_X509(text.get(), one.certificate.get());
  }
  char* data = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(text.get(), &data));
  return {data, size};
}

inline Owned<SSL_CTX> ServerContext() {
  const Identity server = MakeIdentity("server", 3600, nullptr);
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), server.certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), server.key.get()), 1);
  return context;
}

inline Owned<SSL_CTX> ClientContext() {
  return Owned<SSL_CTX>(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
}

inline Owned<SSL> ClientOf(SSL_CTX* context, int fd) {
  Owned<SSL> client(SSL_new(context), SSL_free);
  SSL_set_fd(client.get(), fd);
  SSL_set_connect_state(client.get());
  return client;
}

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_TESTING_H_
