#include "server/http2/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/http2/testing.h"
#include "server/net/testing.h"

namespace colcast::http2 {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxUnreadBytes = 1 << 20;
constexpr size_t kMaxRequestBytes = 8 << 20;

// One thread polls the sockets; the server's standby thread must step in while it is busy.
class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    ConnectionOptions options;
    options.max_request_bytes = kMaxRequestBytes;
    server_ = std::make_unique<Server>(options, TestMethods(), &poller_);
    EXPECT_TRUE(server_->Listen("127.0.0.1", 0, &port_).ok());
    thread_ = std::make_unique<net::PollingThread>(&poller_);
    client_ = std::make_unique<Client>(port_);
  }
  ~ServerTest() override {
    client_.reset();
    server_.reset();
    thread_.reset();
  }

  bool Shutdown() { return server_->Shutdown(Clock::time_point::max()); }

  std::promise<Call*> held_;
  std::atomic<bool> spinning_{true};
  net::Poller poller_{kMaxUnreadBytes};
  net::Standby standby_{&poller_};
  std::unique_ptr<Server> server_;
  int port_ = 0;
  std::unique_ptr<Client> client_;

 private:
  Methods TestMethods() {
    Methods methods;
    const auto add = [&](const char* name, std::function<void(Call*)> handle) {
      methods.emplace(std::string("/test.Service/") + name, Method{std::move(handle)});
    };
    add("Echo", [](Call* call) {
      *call->response() = call->request();
      call->Finish(OkStatus());
    });
    add("Name", [](Call* call) {
      *call->response() = Of(call->Metadata("name").value_or("none"));
      call->Finish(OkStatus());
    });
    add("Large", [](Call* call) {
      *call->response() = Of(std::string(kMaxUnreadBytes, 'x'));
      call->Finish(OkStatus());
    });
    add("Fail", [](Call* call) { call->Finish(InvalidArgument("not like \xc3\xa9 this, 100%")); });
    add("Hold", [this](Call* call) { held_.set_value(call); });
    add("Spin", [this](Call* call) {
      while (spinning_) {
      }
      call->Finish(OkStatus());
    });
    add("StopSpinning", [this](Call* call) {
      spinning_ = false;
      call->Finish(OkStatus());
    });
    return methods;
  }

  std::unique_ptr<net::PollingThread> thread_;
};

TEST_F(ServerTest, SuccessiveCallsReachTheirMethods) {
  for (int i = 0; i < 3; ++i) {
    StartedCall echo(client_.get(), "Echo");
    EXPECT_TRUE(echo.Wait().ok());
    EXPECT_EQ(echo.answer(), "hello");
    const Status failed = StartedCall(client_.get(), "Fail").Wait();
    EXPECT_EQ(failed.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(failed.message, "not like \xc3\xa9 this, 100%");
  }
  EXPECT_EQ(StartedCall(client_.get(), "Guess").Wait().code, StatusCode::kUnimplemented);
}

TEST_F(ServerTest, MessagesOfAnySizeArriveComplete) {
  for (const size_t size : {size_t{0}, size_t{16'000}, size_t{300'000}, kMaxUnreadBytes}) {
    StartedCall echo(client_.get(), "Echo", std::string(size, 'x'));
    EXPECT_TRUE(echo.Wait().ok());
    EXPECT_EQ(echo.answer(), std::string(size, 'x'));
  }
}

// Data that arrives while another thread owns the connection must not be lost.
TEST_F(ServerTest, ConcurrentCallsAreAllAnsweredWhileSeveralThreadsPoll) {
  std::atomic<bool> ended{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!ended) poller_.Poll(scheduling::Clock::now() + std::chrono::milliseconds(10));
    });
  }
  const std::string text(50'000, 'x');
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<StartedCall>> calls;
    for (int i = 0; i < 100; ++i) {
      calls.push_back(std::make_unique<StartedCall>(client_.get(), "Name", text));
    }
    for (const auto& call : calls) EXPECT_TRUE(call->Wait().ok());
  }
  ended = true;
  for (std::thread& other : others) other.join();
}

TEST_F(ServerTest, AMessageOverTheLimitIsRefusedAndTheConnectionStaysOpen) {
  StartedCall large(client_.get(), "Name", std::string(kMaxRequestBytes + 1, 'x'));
  const Status status = large.Wait();
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr(std::to_string(kMaxRequestBytes)));
  EXPECT_TRUE(StartedCall(client_.get(), "Echo").Wait().ok());
}

TEST_F(ServerTest, HandlersSeeMetadata) {
  StartedCall name(client_.get(), "Name");
  EXPECT_TRUE(name.Wait().ok());
  EXPECT_EQ(name.answer(), "ann");
}

TEST_F(ServerTest, AnUnfinishedCallLearnsThatItsClientHungUp) {
  StartedCall client(client_.get(), "Hold");
  Call* const call = held_.get_future().get();
  EXPECT_FALSE(call->cancelled());
  client.Cancel();
  EXPECT_EQ(client.Wait().code, StatusCode::kCancelled);
  while (!call->cancelled()) std::this_thread::yield();
  call->Finish(OkStatus());
}

// A busy call also blocks its own connection, so the other calls use a second one.
TEST_F(ServerTest, ABusyThreadDoesNotDelayOtherConnections) {
  const auto other = std::make_unique<Client>(port_);
  for (int i = 0; i < 3; ++i) {
    spinning_ = true;
    StartedCall busy(client_.get(), "Spin");
    EXPECT_TRUE(StartedCall(other.get(), "Echo").Wait().ok());
    EXPECT_TRUE(StartedCall(other.get(), "StopSpinning").Wait().ok());
    EXPECT_TRUE(busy.Wait().ok());
  }
}

TEST_F(ServerTest, AnAnswerCountsAsUnreadUntilItIsSent) {
  StartedCall first(client_.get(), "Hold");
  Call* const call = held_.get_future().get();
  *call->response() = Of(std::string(2 * kMaxUnreadBytes, 'x'));
  EXPECT_TRUE(call->CountResponse(call->response()->size()).ok());
  EXPECT_EQ(call->CheckClientReads(scheduling::Clock::now()).code, StatusCode::kResourceExhausted);
  EXPECT_TRUE(StartedCall(client_.get(), "Echo").Wait().ok());  // small answers are not counted
  EXPECT_EQ(StartedCall(client_.get(), "Large").Wait().code, StatusCode::kResourceExhausted);
  call->Finish(OkStatus());
  EXPECT_TRUE(first.Wait().ok());
  while (!StartedCall(client_.get(), "Large").Wait().ok()) std::this_thread::yield();
}

TEST_F(ServerTest, AClientThatReadsNothingIsDisconnectedWhileRoomForAnswersIsShort) {
  const auto lazy = std::make_unique<Client>(port_);
  StartedCall large(lazy.get(), "Hold");
  Call* const call = held_.get_future().get();
  *call->response() = Of(std::string(2 * kMaxUnreadBytes, 'x'));
  call->Finish(OkStatus());
  ASSERT_TRUE(poller_.hosts().unread.is_short());
  while (poller_.hosts().unread.bytes() > 0) standby_.LookNow();
  EXPECT_EQ(large.Wait().code, StatusCode::kUnavailable);
}

TEST_F(ServerTest, RefusedCallsCountAsWastedTime) {
  const std::shared_ptr<net::Host> host = poller_.hosts().Of("ipv4:127.0.0.1:1");
  int calls = 0;
  while (host->wasted.InThisSecond().count() == 0) {
    ASSERT_LT(++calls, 10'000);
    EXPECT_EQ(StartedCall(client_.get(), "Guess").Wait().code, StatusCode::kUnimplemented);
  }
}

TEST_F(ServerTest, ShutdownWaitsForUnfinishedCalls) {
  StartedCall client(client_.get(), "Hold");
  Call* const call = held_.get_future().get();
  std::thread end([this] { EXPECT_TRUE(Shutdown()); });
  call->Finish(OkStatus());
  EXPECT_TRUE(client.Wait().ok());
  end.join();
  EXPECT_FALSE(StartedCall(client_.get(), "Echo").Wait().ok());
}

TEST_F(ServerTest, CallsInFlightAtTheDeadlineAreCutOff) {
  StartedCall client(client_.get(), "Hold");
  Call* const call = held_.get_future().get();
  std::thread end(
      [this] { EXPECT_FALSE(server_->Shutdown(Clock::now() + std::chrono::milliseconds(10))); });
  EXPECT_EQ(client.Wait().code, StatusCode::kUnavailable);
  while (!call->cancelled()) std::this_thread::yield();
  call->Finish(OkStatus());
  end.join();
}

// Begins a connection while the server is in `phase`, and expects it to be closed or left open.
void ExpectClosedIn(net::OpenConnections::Phase phase, bool is_closed) {
  net::Poller poller;
  const auto shared = std::make_shared<Shared>(ConnectionOptions(), Methods(), &poller);
  shared->connections.Enter(phase);
  const auto ends = net::ConnectedSockets();
  const net::Socket client(ends[0], nullptr);
  Connection::Start(std::make_unique<net::Socket>(ends[1], nullptr), "unix:", shared);
  EXPECT_EQ(shared->connections.WaitForNone(Clock::now()), is_closed);
  for (const auto& each : poller.AllOf<Connection>()) each->CloseAtOnce();
}

// A connection may be accepted before the server begins to close, and begin afterwards.
TEST(ConnectionStartTest, AConnectionThatBeginsWhileTheServerClosesIsClosed) {
  ExpectClosedIn(net::OpenConnections::Phase::kServing, false);
  ExpectClosedIn(net::OpenConnections::Phase::kDraining, false);
  ExpectClosedIn(net::OpenConnections::Phase::kClosing, true);
}

// Once the server has ended, its owner may destroy objects that handlers use.
TEST_F(ServerTest, ShutdownWaitsForAnUnfinishedCallWhoseClientHungUp) {
  auto gone = std::make_unique<Client>(port_);
  StartedCall client(gone.get(), "Hold");
  Call* const call = held_.get_future().get();
  gone.reset();
  while (!call->cancelled()) std::this_thread::yield();
  std::future<bool> end = std::async(std::launch::async, [this] { return Shutdown(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  call->Finish(OkStatus());
  EXPECT_TRUE(end.get());
}

}  // namespace
}  // namespace colcast::http2
