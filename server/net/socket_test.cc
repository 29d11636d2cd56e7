#include "server/net/socket.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <array>
#include <memory>

namespace colcast::net {
namespace {

template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

Owned<SSL_CTX> ServerContext() {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Owned<X509> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  return context;
}

// OpenSSL reads until data comes or none is there: a client that sends keys without end would have
// a thread for as long.
TEST(SocketTest, AReadEndsHoweverManyKeyUpdatesCome) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Owned<SSL_CTX> server_context = ServerContext();
  Socket server(ends[0], server_context.get());
  const Socket owner(ends[1], nullptr);
  const Owned<SSL_CTX> client_context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const Owned<SSL> client(SSL_new(client_context.get()), SSL_free);
  SSL_set_fd(client.get(), ends[1]);
  SSL_set_connect_state(client.get());
  while (SSL_do_handshake(client.get()) != 1 || server.Handshake() != Socket::Result::kDone) {
    server.Handshake();
  }
  constexpr int kUpdates = 100;
  for (int i = 0; i < kUpdates; ++i) {
    ASSERT_EQ(SSL_key_update(client.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(client.get()), 1);
  }
  ASSERT_EQ(SSL_write(client.get(), "hello", 5), 5);
  std::array<uint8_t, 64> bytes{};
  int empty_reads = 0;
  for (;;) {
    size_t size = bytes.size();
    ASSERT_EQ(server.Read(bytes.data(), &size), Socket::Result::kDone);
    if (size == 5) break;
    ASSERT_EQ(size, 0u);
    ++empty_reads;
  }
  EXPECT_GE(empty_reads, 2);
  size_t size = bytes.size();
  EXPECT_EQ(server.Read(bytes.data(), &size), Socket::Result::kAgain);
}

}  // namespace
}  // namespace colcast::net
