#include "server/net/connection.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <utility>

namespace colcast::net {
namespace {

// Does whatever a test wants done.
class TestConnection final : public Connection {
 public:
  TestConnection(Poller* poller, std::unique_ptr<Socket> socket)
      : Connection(poller, *socket, "unix:"), socket_(std::move(socket)) {}
  using Connection::Begin;

  std::function<void()> work = [] {};
  int turns = 0;
  bool useful = true;
  bool closed = false;

 private:
  Sent DoNow(unsigned what) override {
    ++turns;
    work();
    if ((what & kRead) == 0) return Sent::kNothing;
    return useful ? Sent::kUse : Sent::kWaste;
  }
  void Close() override {
    closed = true;
    End();
  }

  const std::unique_ptr<Socket> socket_;
};

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_ = std::make_unique<Socket>(ends[0], nullptr);
    connection_ =
        std::make_shared<TestConnection>(&poller_, std::make_unique<Socket>(ends[1], nullptr));
  }

  void Poll() { poller_.Poll(scheduling::Clock::time_point::min()); }

  Poller poller_;
  std::unique_ptr<Socket> client_;
  std::shared_ptr<TestConnection> connection_;
};

TEST_F(ConnectionTest, OneThatIsReadableAgainAndAgainLeavesItsThreadToOthers) {
  constexpr int kMany = 1000;
  connection_->work = [this] {
    if (connection_->turns < kMany) connection_->Happened(EPOLLIN);
  };
  connection_->Begin();
  EXPECT_LT(connection_->turns, kMany / 10);
  while (connection_->turns < kMany) Poll();
}

TEST_F(ConnectionTest, OneThatOnlyWastesTimeIsNotReadUntilTheTimeIsLookedAt) {
  connection_->Begin();
  connection_->useful = false;
  connection_->work = [] {
    const clock_t end = clock() + CLOCKS_PER_SEC / 100;
    while (clock() < end) {
    }
  };
  const auto read = [this] {
    const int before = connection_->turns;
    connection_->Happened(EPOLLIN);
    return connection_->turns > before;
  };
  EXPECT_TRUE(read());  // one turn may be so
  EXPECT_TRUE(read());
  EXPECT_FALSE(read());
  const int before = connection_->turns;
  connection_->Happened(EPOLLOUT);  // what waits is sent
  connection_->LookAtTheTime();
  EXPECT_EQ(connection_->turns, before + 2);
  EXPECT_FALSE(read());
  connection_->work = [] {};
  connection_->useful = true;
  connection_->LookAtTheTime();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(read());
}

TEST_F(ConnectionTest, OneThatIsOfUseMayWasteSomeTime) {
  connection_->Begin();
  const auto read = [this](bool useful, int microseconds) {
    connection_->useful = useful;
    connection_->work = [microseconds] {
      const clock_t end = clock() + CLOCKS_PER_SEC / 1'000'000 * microseconds;
      while (clock() < end) {
      }
    };
    const int before = connection_->turns;
    connection_->Happened(EPOLLIN);
    return connection_->turns > before;
  };
  for (int call = 0; call < 1000; ++call) {
    for (const bool useful : {false, false, true, true}) ASSERT_TRUE(read(useful, 10)) << call;
  }
}

TEST_F(ConnectionTest, OneForWhichThereIsNoMemoryIsClosed) {
  connection_->work = [] { throw std::bad_alloc(); };
  connection_->Begin();
  EXPECT_TRUE(connection_->closed);
  EXPECT_TRUE(poller_.All().empty());
}

}  // namespace
}  // namespace colcast::net
