#include "server/net/socket.h"

#include <gtest/gtest.h>

#include <array>

#include "server/net/testing.h"

namespace colcast::net {
namespace {

TEST(HostOfTest, OmitsThePort) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.7:51234"), "ipv4:10.0.0.7");
  EXPECT_EQ(HostOf("unix:/run/s"), "unix:/run/s");
  EXPECT_EQ(HostOf("unix:"), "unix:");
}

TEST(HostOfTest, AnIpv6NetworkIsOneHostAndAMappedAddressIsAnIpv4Host) {
  EXPECT_EQ(HostOf("ipv6:[2001:db8:1:2:3:4:5:6]:51234"), "ipv6:[2001:db8:1:2::]/64");
  EXPECT_EQ(HostOf("ipv6:[2001:db8:1:2:ffff::9]:80"), "ipv6:[2001:db8:1:2::]/64");
  EXPECT_NE(HostOf("ipv6:[2001:db8:1:3::9]:80"), HostOf("ipv6:[2001:db8:1:2::9]:80"));
  EXPECT_EQ(HostOf("ipv6:[::ffff:10.0.0.7]:80"), "ipv4:10.0.0.7");
}

TEST(IsLocalTest, LoopbackAddressesAndUnixSocketsAreLocal) {
  for (const char* peer : {"ipv4:127.0.0.1:51234", "ipv4:127.8.0.1:1", "ipv6:%5B::1%5D:51234",
                           "ipv6:[::1]:51234", "unix:", "unix:/run/s"}) {
    EXPECT_TRUE(IsLocal(peer)) << peer;
  }
  for (const char* peer : {"ipv4:10.127.0.1:1", "ipv4:12.7.0.1:1", "ipv6:%5B::127.0.0.1%5D:1",
                           "ipv6:%5Bfe80::1%5D:1", "ipv6:%5B::12%5D:1", ""}) {
    EXPECT_FALSE(IsLocal(peer)) << peer;
  }
}

// OpenSSL would read until data arrives or the socket is empty, so a client that keeps sending
// KeyUpdates would occupy a thread.
TEST(SocketTest, AReadEndsEvenIfKeyUpdatesKeepComing) {
  const auto ends = ConnectedSockets();
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
