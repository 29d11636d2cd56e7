#include "server/net/listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

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

TEST(ListenerTest, AClientForWhomThereIsNoMemoryIsClosedAndTheNextOneServed) {
  Poller poller;
  int come = 0;
  std::unique_ptr<Socket> served;
  const Accept accept = [&](std::unique_ptr<Socket> socket, const std::string&) {
    if (++come == 1) throw std::bad_alloc();
    served = std::move(socket);
  };
  std::shared_ptr<Listener> listener;
  ASSERT_TRUE(Listener::Listen("127.0.0.1", 0, {nullptr, accept}, &poller, &listener).ok());
  const auto first = ConnectTo(listener->port());
  const auto second = ConnectTo(listener->port());
  while (come < 2) poller.Poll(scheduling::Clock::time_point::max());
  EXPECT_NE(served, nullptr);
  uint8_t byte = 0;
  size_t size = 1;
  EXPECT_EQ(first->Read(&byte, &size), Socket::Result::kClosed);
  listener->End();
}

TEST(ListenerTest, AnAddressThatCannotBeHadIsToldWithItsCause) {
  Poller poller;
  std::shared_ptr<Listener> listener, second;
  ASSERT_TRUE(Listener::Listen("127.0.0.1", 0, {}, &poller, &listener).ok());
  EXPECT_EQ(Listener::Listen("127.0.0.1", listener->port(), {}, &poller, &second).message,
            "the port is in use");
  EXPECT_EQ(Listener::Listen("192.0.2.1", 0, {}, &poller, &second).message,
            "the host is not an address of this machine");
  listener->End();
}

// Workers may be busy, and clients that only connect must not occupy them.
TEST(ListenerTest, WithTlsClientsAreAcceptedWithoutAWorker) {
  const Owned<SSL_CTX> context = ClientContext();
  const Identity server = MakeIdentity("server", 3600, nullptr);
  TlsConfig config;
  config.key = Pem(server, true);
  config.certificates = Pem(server, false);
  std::shared_ptr<TlsContext> tls;
  ASSERT_TRUE(TlsContext::Create(config, Protocols::kHttp1, &tls).ok());
  Poller poller;
  std::promise<void> served;
  const Accept accept = [&](std::unique_ptr<Socket>, const std::string&) { served.set_value(); };
  std::shared_ptr<Listener> listener;
  ASSERT_TRUE(Listener::Listen("127.0.0.1", 0, {tls, accept}, &poller, &listener).ok());
  const auto end = ConnectTo(listener->port());
  EXPECT_EQ(SSL_do_handshake(ClientOf(context.get(), end->fd()).get()), 1);
  served.get_future().wait();
  listener->End();
}

// The kernel announces a client only once.
TEST(ListenerTest, ClientsForWhomThereIsNoDescriptorAreServedWhenThereIsOne) {
  Poller poller;
  std::vector<std::unique_ptr<Socket>> served;
  const Accept accept = [&](std::unique_ptr<Socket> socket, const std::string&) {
    served.push_back(std::move(socket));
  };
  std::shared_ptr<Listener> listener;
  ASSERT_TRUE(Listener::Listen("127.0.0.1", 0, {nullptr, accept}, &poller, &listener).ok());
  const auto first = ConnectTo(listener->port());
  const auto second = ConnectTo(listener->port());
  rlimit limit{}, before{};
  getrlimit(RLIMIT_NOFILE, &before);
  limit = before;
  limit.rlim_cur = 4;  // fewer than the open descriptors
  setrlimit(RLIMIT_NOFILE, &limit);
  poller.Poll(scheduling::Clock::time_point::max());
  EXPECT_TRUE(served.empty());
  setrlimit(RLIMIT_NOFILE, &before);
  poller.Poll(scheduling::Clock::time_point::min());
  EXPECT_TRUE(served.empty());
  listener->PostTimer();
  EXPECT_EQ(served.size(), 2u);
  listener->End();
}

}  // namespace
}  // namespace colcast::net
