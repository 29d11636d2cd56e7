#include "server/net/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/net/connection.h"
#include "server/net/testing.h"

namespace colcast::net {
namespace {

std::unique_ptr<Socket> ConnectTo(int port) {
  auto client = std::make_unique<Socket>(socket(AF_INET, SOCK_STREAM, 0), nullptr);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(connect(client->fd(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return client;
}

class ListenerTest : public ::testing::Test {
 protected:
  ~ListenerTest() override { listener_->End(); }

  void Listen(const Accept& accept, std::shared_ptr<TlsContext> tls = nullptr) {
    const Listener::Serving serving{std::move(tls), Protocol::kHttp1, accept};
    ASSERT_TRUE(Listener::Listen("127.0.0.1", 0, serving, &poller_, &listener_).ok());
  }

  Poller poller_;
  std::shared_ptr<Listener> listener_;
};

TEST_F(ListenerTest, AClientIsServedAfterMemoryRanOutForAnother) {
  int come = 0;
  std::unique_ptr<Socket> served;
  Listen([&](std::unique_ptr<Socket> socket, const std::string&) {
    if (++come == 1) throw std::bad_alloc();
    served = std::move(socket);
  });
  const auto first = ConnectTo(listener_->port());
  const auto second = ConnectTo(listener_->port());
  while (come < 2) poller_.Poll(scheduling::Clock::time_point::max());
  EXPECT_NE(served, nullptr);
  uint8_t byte = 0;
  size_t size = 1;
  EXPECT_EQ(first->Read(&byte, &size), Socket::Result::kClosed);
}

TEST_F(ListenerTest, ErrorsSayWhyAnAddressCannotBeUsed) {
  std::shared_ptr<Listener> second;
  Listen({});
  EXPECT_EQ(Listener::Listen("127.0.0.1", listener_->port(), {}, &poller_, &second).message,
            "the port is in use");
  EXPECT_EQ(Listener::Listen("192.0.2.1", 0, {}, &poller_, &second).message,
            "the host is not an address of this machine");
}

// Workers may be busy, and clients that only connect must not occupy them.
TEST_F(ListenerTest, TlsClientsAreAcceptedWithoutAWorker) {
  const Owned<SSL_CTX> context = ClientContext();
  const Identity server = MakeIdentity("server", 3600, nullptr);
  TlsConfig config;
  config.key = Pem(server, true);
  config.certificates = Pem(server, false);
  std::shared_ptr<TlsContext> tls;
  ASSERT_TRUE(TlsContext::Create(config, &tls).ok());
  std::promise<void> served;
  Listen([&](std::unique_ptr<Socket>, const std::string&) { served.set_value(); }, tls);
  const auto end = ConnectTo(listener_->port());
  EXPECT_EQ(SSL_do_handshake(ClientOf(context.get(), end->fd()).get()), 1);
  served.get_future().wait();
}

// The kernel announces a client only once.
TEST_F(ListenerTest, ClientsWaitForAFreeDescriptorAndAreThenServed) {
  std::vector<std::unique_ptr<Socket>> served;
  Listen([&](std::unique_ptr<Socket> socket, const std::string&) {
    served.push_back(std::move(socket));
  });
  const auto first = ConnectTo(listener_->port());
  const auto second = ConnectTo(listener_->port());
  rlimit limit{}, before{};
  getrlimit(RLIMIT_NOFILE, &before);
  limit = before;
  limit.rlim_cur = 4;  // fewer than the open descriptors
  setrlimit(RLIMIT_NOFILE, &limit);
  poller_.Poll(scheduling::Clock::time_point::max());
  EXPECT_TRUE(served.empty());
  setrlimit(RLIMIT_NOFILE, &before);
  poller_.Poll(scheduling::Clock::time_point::min());
  EXPECT_TRUE(served.empty());
  listener_->PostTimer();
  EXPECT_EQ(served.size(), 2u);
}

class HandshakesTest : public ::testing::Test {
 protected:
  HandshakesTest() { std::signal(SIGPIPE, SIG_IGN); }  // OpenSSL writes without MSG_NOSIGNAL

  // Connects a client and returns its end, in blocking mode.
  std::unique_ptr<Socket> Connect(const std::string& peer = "unix:") {
    const auto [server, client] = ConnectedSockets(/*flags=*/0);
    EXPECT_EQ(fcntl(server, F_SETFL, O_NONBLOCK), 0);
    handshakes_->Begin(std::make_unique<Socket>(server, server_context_.get()), peer);
    return std::make_unique<Socket>(client, nullptr);
  }
  static bool IsClosed(const Socket& client) {
    uint8_t byte = 0;
    return recv(client.fd(), &byte, 1, 0) == 0;
  }
  void ExpectServed(const Socket& end) {
    const auto client = ClientOf(client_context_.get(), end.fd());
    EXPECT_EQ(SSL_do_handshake(client.get()), 1);
    while (!IsClosed(end)) {  // session tickets come first
    }
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
      for (int j = 0; j < kEach; ++j) ExpectServed(*Connect());
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served_, kThreads * kEach);
}

TEST_F(HandshakesTest, AClientThatDoesNotSpeakTlsIsDisconnected) {
  const auto client = Connect();
  ASSERT_EQ(send(client->fd(), "no such protocol", 16, 0), 16);
  uint8_t byte = 0;
  while (recv(client->fd(), &byte, 1, 0) > 0) {  // the TLS alert
  }
  EXPECT_EQ(served_, 0);
}

TEST_F(HandshakesTest, UnfinishedHandshakesPerHostAreLimited) {
  std::vector<std::unique_ptr<Socket>> clients;
  for (int i = 0; i < Handshakes::kMaxPerHost; ++i) clients.push_back(Connect());
  EXPECT_TRUE(IsClosed(*Connect("unix:")));
  const auto other = Connect("ipv4:10.0.0.7:1");
  const auto later = scheduling::Clock::now() + std::chrono::seconds(1);
  EXPECT_TRUE(CloseIdlest(handshakes_->poller().AllOf<Connection>(), 1, later));
  EXPECT_TRUE(IsClosed(*clients[0]));
  ExpectServed(*Connect());
}

TEST_F(HandshakesTest, EndingDisconnectsClientsWithUnfinishedHandshakes) {
  const auto client = Connect();
  handshakes_.reset();
  EXPECT_TRUE(IsClosed(*client));
}

}  // namespace
}  // namespace colcast::net
