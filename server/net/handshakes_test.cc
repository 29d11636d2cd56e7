#include "server/net/handshakes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "server/net/connection.h"
#include "server/net/testing.h"

namespace colcast::net {
namespace {

class HandshakesTest : public ::testing::Test {
 protected:
  HandshakesTest() { std::signal(SIGPIPE, SIG_IGN); }  // OpenSSL writes without MSG_NOSIGNAL

  // Connects a client and returns its end, in blocking mode.
  std::unique_ptr<Socket> Connect(const std::string& peer = "unix:") {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    EXPECT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    handshakes_->Begin(std::make_unique<Socket>(ends[0], server_context_.get()), peer);
    return std::make_unique<Socket>(ends[1], nullptr);
  }
  static bool IsClosed(const Socket& client) {
    uint8_t byte = 0;
    return recv(client.fd(), &byte, 1, 0) == 0;
  }

  const Owned<SSL_CTX> server_context_ = ServerContext();
  const Owned<SSL_CTX> client_context_ = ClientContext();
  std::atomic<int> served_{0};
  std::unique_ptr<Handshakes> handshakes_ = std::make_unique<Handshakes>(
      [this](std::unique_ptr<Socket>, const std::string&) { ++served_; });
};

TEST_F(HandshakesTest, ClientsAreServedAfterTheirHandshakes) {
  constexpr int kThreads = 4, kEach = 5;
  std::vector<std::thread> clients;
  for (int i = 0; i < kThreads; ++i) {
    clients.emplace_back([this] {
      for (int j = 0; j < kEach; ++j) {
        const auto end = Connect();
        const auto client = ClientOf(client_context_.get(), end->fd());
        EXPECT_EQ(SSL_do_handshake(client.get()), 1);
        while (!IsClosed(*end)) {  // session tickets come first
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served_, kThreads * kEach);
}

TEST_F(HandshakesTest, AClientThatSaysSomethingElseIsClosed) {
  const auto client = Connect();
  ASSERT_EQ(send(client->fd(), "no such protocol", 16, 0), 16);
  uint8_t byte = 0;
  while (recv(client->fd(), &byte, 1, 0) > 0) {  // the TLS alert
  }
  EXPECT_EQ(served_, 0);
}

TEST_F(HandshakesTest, AHostMayBeginSoManyAndGoesOnWhenOneHasEnded) {
  std::vector<std::unique_ptr<Socket>> clients;
  for (int i = 0; i < Handshakes::kMaxPerHost; ++i) clients.push_back(Connect());
  EXPECT_TRUE(IsClosed(*Connect("unix:")));
  const auto other = Connect("ipv4:10.0.0.7:1");
  const auto later = scheduling::Clock::now() + std::chrono::seconds(1);
  EXPECT_TRUE(CloseIdlest(handshakes_->poller().AllOf<Connection>(), 1, later));
  EXPECT_TRUE(IsClosed(*clients[0]));
  const auto next = Connect();
  const auto handshake = ClientOf(client_context_.get(), next->fd());
  EXPECT_EQ(SSL_do_handshake(handshake.get()), 1);
  while (!IsClosed(*next)) {  // session tickets come first
  }
}

TEST_F(HandshakesTest, TheirEndClosesThoseThatHaveNotFinished) {
  const auto client = Connect();
  handshakes_.reset();
  EXPECT_TRUE(IsClosed(*client));
}

}  // namespace
}  // namespace colcast::net
