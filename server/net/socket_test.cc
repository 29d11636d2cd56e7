#include "server/net/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "server/net/tls_testing.h"

namespace colcast::net {
namespace {

// OpenSSL reads until data comes or none is there: a client that sends keys without end would have
// a thread for as long.
TEST(SocketTest, AReadEndsHoweverManyKeyUpdatesCome) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Owned<SSL_CTX> server_context = ServerContext();
  Socket server(ends[0], server_context.get());
  const Socket owner(ends[1], nullptr);
  const Owned<SSL_CTX> client_context = ClientContext();
  const Owned<SSL> client = ClientOf(client_context.get(), ends[1]);
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
