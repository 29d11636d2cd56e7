#include "server/net/connection.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "server/net/testing.h"

namespace colcast::net {
namespace {

// Runs a function that a test sets.
class TestConnection final : public Connection {
 public:
  TestConnection(Poller* poller, std::unique_ptr<Socket> socket)
      : Connection(poller, *socket, "unix:"), socket_(std::move(socket)) {}
  using Connection::Begin;
  using Connection::is_held;

  std::function<void()> work = [] {};
  int turns = 0;
  bool useful = true;
  bool idle = true;
  bool closed = false;

 private:
  void DoNow(unsigned what) override {
    ++turns;
    work();
    if ((what & kClose) != 0) Close();
    if ((what & kRead) != 0) use_ = {useful ? 1 : 0, 0, 1};
  }
  bool IsIdle() const override { return idle; }
  void Close() override {
    closed = true;
    End();
  }

  const std::unique_ptr<Socket> socket_;
};

class ConnectionTest : public testing::Test {
 protected:
  // Makes a connection whose client has hung up.
  std::shared_ptr<TestConnection> Make() {
    const auto [client, server] = ConnectedSockets();
    close(client);
    return std::make_shared<TestConnection>(&poller_, std::make_unique<Socket>(server, nullptr));
  }
  std::shared_ptr<TestConnection> Add() {
    auto made = Make();
    made->Begin();
    return made;
  }
  // Whether the connection reads.
  static bool Reads(TestConnection* connection) {
    const int before = connection->turns;
    connection->Happened(EPOLLIN);
    return connection->turns > before;
  }

  static std::function<void()> Spin(int microseconds) {
    return [microseconds] {
      const clock_t end = clock() + CLOCKS_PER_SEC / 1'000'000 * microseconds;
      while (clock() < end) {
      }
    };
  }

  void Poll() { poller_.Poll(scheduling::Clock::time_point::min()); }

  Poller poller_;
  const std::shared_ptr<TestConnection> connection_ = Make();
};

TEST_F(ConnectionTest, AConnectionThatIsAlwaysReadableLeavesItsThreadToOthers) {
  constexpr int kMany = 1000;
  connection_->work = [this] {
    if (connection_->turns < kMany) connection_->Happened(EPOLLIN);
  };
  connection_->Begin();
  EXPECT_LT(connection_->turns, kMany / 10);
  while (connection_->turns < kMany) Poll();
}

TEST_F(ConnectionTest, AWastefulConnectionIsNotReadUntilTheNextTick) {
  connection_->Begin();
  connection_->useful = false;
  connection_->work = Spin(6'000);
  const auto read = [this] { return Reads(connection_.get()); };
  EXPECT_TRUE(read());  // one wasteful turn is allowed
  EXPECT_TRUE(read());
  EXPECT_FALSE(connection_->is_held());
  EXPECT_FALSE(read());
  EXPECT_TRUE(connection_->is_held());
  const int before = connection_->turns;
  connection_->Happened(EPOLLOUT);  // pending output is sent
  connection_->PostTimer();
  EXPECT_EQ(connection_->turns, before + 2);
  EXPECT_FALSE(read());
  connection_->work = [] {};
  connection_->useful = true;
  connection_->PostTimer();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(read());
}

TEST_F(ConnectionTest, AUsefulConnectionMayWasteSomeTime) {
  connection_->Begin();
  const auto read = [this](bool useful, int microseconds) {
    connection_->useful = useful;
    connection_->work = Spin(microseconds);
    return Reads(connection_.get());
  };
  for (int call = 0; call < 1000; ++call) {
    for (const bool useful : {false, false, true, true}) ASSERT_TRUE(read(useful, 10)) << call;
  }
}

// Each connection may waste 5 ms, all connections of a host together 10 ms.
TEST_F(ConnectionTest, ConnectionsOfOneHostShareALimitOnWastedTime) {
  std::vector<std::shared_ptr<TestConnection>> all;
  int turns = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 40; ++i) {
    all.push_back(Add());
    all.back()->useful = false;
    all.back()->work = Spin(4'000);
    EXPECT_TRUE(Reads(all.back().get()));  // the first turn always runs
    turns += Reads(all.back().get()) ? 1 : 0;
  }
  // At most four turns run within a second, but on a busy machine the loop may take several
  // seconds.
  const auto passed = std::chrono::steady_clock::now() - start;
  EXPECT_LE(turns, 4 * (2 + passed / std::chrono::seconds(1)));
  EXPECT_GE(turns, 2);
  // Another client of the host is still served.
  connection_->Begin();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Reads(connection_.get()));
}

class CloseIdlestTest : public ConnectionTest {
 protected:
  // Closes as if each connection had last been used a second ago, or just now.
  bool Close(size_t most, bool just_now = false) {
    scheduling::Clock::time_point last;
    const auto all = poller_.AllOf<Connection>();
    for (const auto& each : all) last = std::max(last, each->last_use().second);
    return CloseIdlest(all, most, last + std::chrono::seconds(just_now ? 0 : 1));
  }
};

TEST_F(CloseIdlestTest, TheOldestConnectionsWithoutCallsAreClosedFirstUnlessTheyHaveJustBegun) {
  const auto first = Add(), second = Add(), third = Add();
  EXPECT_FALSE(Close(2, /*just_now=*/true));
  EXPECT_TRUE(Close(2));
  EXPECT_TRUE(first->closed);
  EXPECT_TRUE(second->closed);
  EXPECT_FALSE(third->closed);
  EXPECT_TRUE(Close(2));
  EXPECT_TRUE(third->closed);
  EXPECT_FALSE(Close(2));
}

TEST_F(CloseIdlestTest, AConnectionWithARecentCallStaysOpen) {
  const auto with_call = Add(), without = Add();
  with_call->Happened(EPOLLIN);
  EXPECT_LT(without->last_use(), with_call->last_use());
  EXPECT_TRUE(Close(2));
  EXPECT_TRUE(without->closed);
  EXPECT_FALSE(Close(2));
  EXPECT_FALSE(with_call->closed);
}

TEST_F(CloseIdlestTest, ABusyConnectionStaysOpenAndIsNotChosenAgain) {
  const auto busy = Add(), other = Add();
  busy->idle = false;
  EXPECT_TRUE(Close(1));
  EXPECT_FALSE(busy->closed);
  EXPECT_TRUE(Close(1));
  EXPECT_TRUE(other->closed);
  EXPECT_FALSE(busy->closed);
}

TEST_F(CloseIdlestTest, ATickUpdatesTheTimeOfLastUse) {
  const auto used = Add();
  used->Happened(EPOLLIN);
  const auto before = used->last_use();
  used->PostTimer();
  EXPECT_GT(used->last_use(), before);
  const auto after = used->last_use();
  used->PostTimer();
  EXPECT_EQ(used->last_use(), after);
}

TEST(OpenConnectionsTest, PhasesOnlyAdvance) {
  using Phase = OpenConnections::Phase;
  OpenConnections open;
  EXPECT_EQ(open.phase(), Phase::kServing);
  open.Enter(Phase::kClosing);
  open.Enter(Phase::kDraining);
  EXPECT_EQ(open.phase(), Phase::kClosing);
}

TEST_F(ConnectionTest, AConnectionThatRunsOutOfMemoryIsClosed) {
  connection_->work = [] { throw std::bad_alloc(); };
  connection_->Begin();
  EXPECT_TRUE(connection_->closed);
  EXPECT_TRUE(poller_.All().empty());
}

}  // namespace
}  // namespace colcast::net
