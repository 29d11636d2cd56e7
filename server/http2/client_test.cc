#include "server/http2/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/http2/server.h"
#include "server/http2/testing.h"
#include "server/net/testing.h"

namespace colcast::http2 {
namespace {

using scheduling::Clock;
using testing::HasSubstr;

// A server on a unix socket that answers with its name.
class NamedServer {
 public:
  NamedServer(const std::string& name, const std::string& path, uint32_t max_streams = 100)
      : name_(name) {
    ConnectionOptions options;
    options.max_concurrent_streams = max_streams;
    server_ = std::make_unique<Server>(options, TestMethods(), &poller_);
    unlink(path.c_str());  // left by the previous server
    EXPECT_TRUE(server_->Listen(path).ok());
    thread_ = std::make_unique<net::PollingThread>(&poller_);
  }
  ~NamedServer() {
    server_.reset();
    thread_.reset();
  }

  Call* TakeHeld() { return held_.get_future().get(); }
  Server* server() { return server_.get(); }

 private:
  Methods TestMethods() {
    Methods methods;
    const auto add = [&](const char* name, std::function<void(Call*)> handle) {
      methods.emplace(std::string("/test.Service/") + name, Method{std::move(handle)});
    };
    add("Name", [this](Call* call) {
      *call->response() = Of(name_);
      call->Finish(OkStatus());
    });
    add("Echo", [](Call* call) {
      *call->response() = call->request();
      call->response()->set_compression(Compression::kNone);
      call->Finish(OkStatus());
    });
    add("Connection", [](Call* call) {
      *call->response() = Of(std::to_string(call->connection().number()));
      call->Finish(OkStatus());
    });
    add("Compression", [](Call* call) {
      *call->response() = Of(std::to_string(static_cast<int>(call->request().compression())));
      call->Finish(OkStatus());
    });
    add("SecondsLeft", [](Call* call) {
      const auto left = call->deadline() - Clock::now();
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      *call->response() = Of(std::to_string(seconds.count()));
      call->Finish(OkStatus());
    });
    add("Hold", [this](Call* call) { held_.set_value(call); });
    return methods;
  }

  const std::string name_;
  std::promise<Call*> held_;
  net::Poller poller_;
  net::Standby standby_{&poller_};
  std::unique_ptr<Server> server_;
  std::unique_ptr<net::PollingThread> thread_;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : client_(ClientOf("unix:" + path_)) {}
  ~ClientTest() override { unlink(path_.c_str()); }

  std::string NameOfServer() {
    StartedCall call(client_.get(), "Name");
    EXPECT_TRUE(call.Wait().ok());
    return call.answer();
  }

  const std::string path_ = ::testing::TempDir() + "client_test." + std::to_string(getpid());
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, AllCallsShareOneConnection) {
  NamedServer server("ann", path_);
  std::vector<std::unique_ptr<StartedCall>> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(std::make_unique<StartedCall>(client_.get(), "Connection"));
  }
  for (const auto& call : calls) {
    EXPECT_TRUE(call->Wait().ok());
    EXPECT_EQ(call->answer(), calls[0]->answer());
  }
}

TEST_F(ClientTest, MoreCallsThanTheServerTakesAtOnceWait) {
  NamedServer server("ann", path_, 2);
  std::vector<std::unique_ptr<StartedCall>> calls;
  const std::string text(100'000, 'x');
  for (int i = 0; i < 300; ++i) {
    calls.push_back(std::make_unique<StartedCall>(client_.get(), "Echo", text));
  }
  for (const auto& call : calls) {
    EXPECT_TRUE(call->Wait().ok());
    EXPECT_EQ(call->answer(), text);
  }
}

TEST_F(ClientTest, ACompressedMessageGoesOutAsItIs) {
  NamedServer server("ann", path_);
  for (const Compression compression : {Compression::kGzip, Compression::kDeflate}) {
    Message message = Of("not really compressed");
    message.set_compression(compression);
    StartedCall echo(client_.get(), ClientRequest{"Echo", message});
    EXPECT_TRUE(echo.Wait().ok());
    EXPECT_EQ(echo.answer(), "not really compressed");
    StartedCall seen(client_.get(), ClientRequest{"Compression", message});
    EXPECT_TRUE(seen.Wait().ok());
    EXPECT_EQ(seen.answer(), std::to_string(static_cast<int>(compression)));
  }
}

TEST_F(ClientTest, TheServerIsToldTheDeadline) {
  NamedServer server("ann", path_);
  const auto deadline = Clock::now() + std::chrono::hours(30);
  StartedCall call(client_.get(), ClientRequest{"SecondsLeft", Of(""), {}, deadline});
  EXPECT_TRUE(call.Wait().ok());
  EXPECT_NEAR(std::stod(call.answer()), 30 * 3600, 600);
}

TEST_F(ClientTest, AtTheDeadlineTheCallEndsOnBothSides) {
  NamedServer server("ann", path_);
  EXPECT_EQ(NameOfServer(), "ann");
  const auto deadline = Clock::now() + std::chrono::seconds(5);  // the server must have it before
  StartedCall late(client_.get(), ClientRequest{"Hold", Of(""), {}, deadline});
  Call* const held = server.TakeHeld();
  EXPECT_EQ(late.Wait().code, StatusCode::kDeadlineExceeded);
  while (!held->cancelled()) std::this_thread::yield();
  held->Finish(OkStatus());
  EXPECT_EQ(NameOfServer(), "ann");
}

TEST_F(ClientTest, ACallThatWasCancelledLeavesTheOthers) {
  NamedServer server("ann", path_, 1);
  StartedCall held(client_.get(), "Hold");
  Call* const call = server.TakeHeld();
  StartedCall waiting(client_.get(), "Name");
  StartedCall other(client_.get(), "Name");
  waiting.Cancel();
  EXPECT_EQ(waiting.Wait().code, StatusCode::kCancelled);
  call->Finish(OkStatus());
  EXPECT_TRUE(held.Wait().ok());
  EXPECT_TRUE(other.Wait().ok());
}

TEST_F(ClientTest, WhereNobodyListensTheCallIsUnavailableUntilSomebodyDoes) {
  for (int i = 0; i < 3; ++i) {
    const Status status = StartedCall(client_.get(), "Name").Wait();
    EXPECT_EQ(status.code, StatusCode::kUnavailable);
    EXPECT_THAT(status.message, HasSubstr(path_));
  }
  NamedServer server("ann", path_);
  EXPECT_EQ(NameOfServer(), "ann");
}

TEST_F(ClientTest, AServerThatComesBackIsFoundAgain) {
  auto server = std::make_unique<NamedServer>("ann", path_);
  EXPECT_EQ(NameOfServer(), "ann");
  StartedCall held(client_.get(), "Hold");
  Call* const call = server->TakeHeld();
  std::thread end([&] { server->server()->Shutdown(std::chrono::steady_clock::now()); });
  EXPECT_EQ(held.Wait().code, StatusCode::kUnavailable);
  call->Finish(OkStatus());
  end.join();
  server = std::make_unique<NamedServer>("bob", path_);
  EXPECT_EQ(NameOfServer(), "bob");
}

// The old server still answers its calls; new calls go to the next server.
TEST_F(ClientTest, AServerThatGoesAwayKeepsItsCalls) {
  NamedServer leaving("ann", path_);
  StartedCall held(client_.get(), "Hold");
  Call* const call = leaving.TakeHeld();
  std::thread end(
      [&] { leaving.server()->Shutdown(std::chrono::steady_clock::time_point::max()); });
  NamedServer next("bob", path_);
  while (NameOfServer() != "bob") std::this_thread::yield();
  *call->response() = Of("late");
  call->Finish(OkStatus());
  EXPECT_TRUE(held.Wait().ok());
  EXPECT_EQ(held.answer(), "late");
  end.join();
}

TEST_F(ClientTest, OneThatWasStoppedCancelsWhatHasNotEndedAndWhatIsStarted) {
  NamedServer server("ann", path_);
  StartedCall held(client_.get(), "Hold");
  Call* const call = server.TakeHeld();
  client_->Stop();
  EXPECT_EQ(held.Wait().code, StatusCode::kCancelled);
  EXPECT_EQ(StartedCall(client_.get(), "Name").Wait().code, StatusCode::kCancelled);
  call->Finish(OkStatus());
}

TEST_F(ClientTest, TheClientsEndCancelsWhatHasNotEnded) {
  NamedServer server("ann", path_);
  StartedCall held(client_.get(), "Hold");
  Call* const call = server.TakeHeld();
  client_.reset();
  EXPECT_EQ(held.Wait().code, StatusCode::kCancelled);
  while (!call->cancelled()) std::this_thread::yield();
  call->Finish(OkStatus());
}

// Runs in a separate process, whose address space has no room for another thread's stack.
TEST(ClientLookupTest, ANameThatGetsNoThreadToLookItUpIsAnErrorOfTheCall) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto call_without_room = [] {
    Target target;
    EXPECT_TRUE(Target::Parse("colcast.invalid:1", &target).ok());
    Client client(target);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * getpagesize() + (1 << 20);  // less than a stack
    const rlimit few{bytes, bytes};
    setrlimit(RLIMIT_AS, &few);
    std::fprintf(stderr, "%s\n", StartedCall(&client, "Name").Wait().message.c_str());
    std::_Exit(0);
  };
  EXPECT_EXIT(call_without_room(), testing::ExitedWithCode(0),
              "cannot connect to colcast.invalid:1: no thread for looking up colcast.invalid:1: ");
}

// Sends the same bytes to every client, or none, then reads until the client hangs up.
class StrangeServer {
 public:
  explicit StrangeServer(std::string says) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&any), sizeof(any)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    thread_ = std::thread([this, says = std::move(says)] {
      for (int accepted = 0; (accepted = accept(listener_, nullptr, nullptr)) >= 0;) {
        ++accepted_;
        send(accepted, says.data(), says.size(), MSG_NOSIGNAL);
        shutdown(accepted, SHUT_WR);
        std::array<char, 4096> heard;
        while (recv(accepted, heard.data(), heard.size(), 0) > 0) {
        }
        close(accepted);
      }
    });
  }
  ~StrangeServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  int accepted() const { return accepted_; }
  std::string target() const {
    sockaddr_in name{};
    socklen_t size = sizeof(name);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
    return "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }

 private:
  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

TEST_F(ClientTest, ACallThatWasRefusedIsSentOnceMore) {
  const char settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
  const char goaway[] = {0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // no stream accepted
  const StrangeServer server(std::string(settings, sizeof(settings)) +
                             std::string(goaway, sizeof(goaway)));
  const auto client = ClientOf(server.target());
  const Status status = StartedCall(client.get(), "Name").Wait();
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_THAT(status.message, HasSubstr("refused"));
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(ClientTest, WhoSpeaksNoHttp2IsUnavailable) {
  for (const char* says : {"", "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    const StrangeServer server(says);
    const auto client = ClientOf(server.target());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(StartedCall(client.get(), "Name").Wait().code, StatusCode::kUnavailable) << says;
    }
  }
}

}  // namespace
}  // namespace colcast::http2
