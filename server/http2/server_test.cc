#include "server/http2/server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace colcast::http2 {
namespace {

using testing::HasSubstr;
using WallClock = std::chrono::system_clock;

constexpr size_t kMaxUnreadBytes = 1 << 20;
constexpr size_t kMaxRequestBytes = 8 << 20;

Message Of(std::string text) {
  const auto owner = std::make_shared<std::string>(std::move(text));
  Message message;
  message.Append(owner, reinterpret_cast<const uint8_t*>(owner->data()), owner->size());
  return message;
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  }
  return text;
}

// A call that gRPC's client has started.
class ClientCall {
 public:
  ClientCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
             const std::string& text = "hello") {
    context_.AddMetadata("name", "ann");
    const grpc::Slice slice(text);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::GenericStub stub(channel);
    reader_ = stub.PrepareUnaryCall(&context_, "/test.Service/" + method, request, &queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }

  void Cancel() { context_.TryCancel(); }
  grpc::Status Wait() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    return status_;
  }
  std::string response() const { return TextOf(response_); }

 private:
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

// One thread polls the sockets; the server's own has to stand in where that is kept busy.
class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    ConnectionOptions options;
    options.max_request_bytes = kMaxRequestBytes;
    options.max_unread_response_bytes = kMaxUnreadBytes;
    server_ = std::make_unique<Server>(options, TestMethods(), &poller_);
    int port = 0;
    EXPECT_TRUE(server_->Listen("127.0.0.1", 0, &port).ok());
    thread_ = std::thread([this] {
      while (!ended_) poller_.Poll(scheduling::Clock::time_point::max());
    });
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    target_ = "127.0.0.1:" + std::to_string(port);
    channel_ = grpc::CreateCustomChannel(target_, grpc::InsecureChannelCredentials(), arguments);
  }
  ~ServerTest() override {
    server_.reset();
    ended_ = true;
    poller_.Wake();
    thread_.join();
  }

  bool Shutdown() { return server_->Shutdown(WallClock::time_point::max()); }

  std::promise<Call*> held_;
  std::atomic<bool> spinning_{true};
  Poller poller_;
  std::unique_ptr<Server> server_;
  std::string target_;
  std::shared_ptr<grpc::Channel> channel_;

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

  std::atomic<bool> ended_{false};
  std::thread thread_;
};

TEST_F(ServerTest, CallsAreAnsweredByNameOneAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    ClientCall echo(channel_, "Echo");
    EXPECT_TRUE(echo.Wait().ok());
    EXPECT_EQ(echo.response(), "hello");
    const grpc::Status failed = ClientCall(channel_, "Fail").Wait();
    EXPECT_EQ(failed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(failed.error_message(), "not like \xc3\xa9 this, 100%");
  }
  EXPECT_EQ(ClientCall(channel_, "Guess").Wait().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, MessagesOfAnySizeComeWhole) {
  for (const size_t size : {size_t{0}, size_t{16'000}, size_t{300'000}, kMaxUnreadBytes}) {
    ClientCall echo(channel_, "Echo", std::string(size, 'x'));
    EXPECT_TRUE(echo.Wait().ok());
    EXPECT_EQ(echo.response(), std::string(size, 'x'));
  }
}

// What comes while a thread has the connection is not forgotten.
TEST_F(ServerTest, ManyCallsAtOnceAreAllAnsweredHoweverManyThreadsPoll) {
  std::atomic<bool> ended{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!ended) poller_.Poll(scheduling::Clock::now() + std::chrono::milliseconds(10));
    });
  }
  const std::string text(50'000, 'x');
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<ClientCall>> calls;
    for (int i = 0; i < 100; ++i) {
      calls.push_back(std::make_unique<ClientCall>(channel_, "Name", text));
    }
    for (const auto& call : calls) EXPECT_TRUE(call->Wait().ok());
  }
  ended = true;
  for (std::thread& other : others) other.join();
}

TEST_F(ServerTest, AMessageOverTheLimitIsRefusedAndTheConnectionStays) {
  ClientCall large(channel_, "Name", std::string(kMaxRequestBytes + 1, 'x'));
  const grpc::Status status = large.Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr(std::to_string(kMaxRequestBytes)));
  EXPECT_TRUE(ClientCall(channel_, "Echo").Wait().ok());
}

TEST_F(ServerTest, MetadataIsThere) {
  ClientCall name(channel_, "Name");
  EXPECT_TRUE(name.Wait().ok());
  EXPECT_EQ(name.response(), "ann");
}

TEST_F(ServerTest, ACallInHandLearnsThatItsClientHungUp) {
  ClientCall client(channel_, "Hold");
  Call* const call = held_.get_future().get();
  EXPECT_FALSE(call->cancelled());
  client.Cancel();
  EXPECT_EQ(client.Wait().error_code(), grpc::StatusCode::CANCELLED);
  while (!call->cancelled()) std::this_thread::yield();
  call->Finish(OkStatus());
}

// A call keeps its own connection busy, too.
TEST_F(ServerTest, AThreadThatIsKeptBusyDoesNotKeepOthersFromTheirAnswers) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto other = grpc::CreateCustomChannel(target_, grpc::InsecureChannelCredentials(), own);
  for (int i = 0; i < 3; ++i) {
    spinning_ = true;
    ClientCall busy(channel_, "Spin");
    EXPECT_TRUE(ClientCall(other, "Echo").Wait().ok());
    EXPECT_TRUE(ClientCall(other, "StopSpinning").Wait().ok());
    EXPECT_TRUE(busy.Wait().ok());
  }
}

TEST_F(ServerTest, AnAnswerCountsUntilItHasBeenSent) {
  ClientCall first(channel_, "Hold");
  Call* const call = held_.get_future().get();
  *call->response() = Of(std::string(2 * kMaxUnreadBytes, 'x'));
  EXPECT_TRUE(call->CountResponse(call->response()->size()).ok());
  EXPECT_EQ(call->CheckClientReads().code, StatusCode::kResourceExhausted);
  EXPECT_TRUE(ClientCall(channel_, "Echo").Wait().ok());  // small
  EXPECT_EQ(ClientCall(channel_, "Large").Wait().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  call->Finish(OkStatus());
  EXPECT_TRUE(first.Wait().ok());
  while (!ClientCall(channel_, "Large").Wait().ok()) std::this_thread::yield();
}

TEST_F(ServerTest, TheEndWaitsForACallInHandAndAnswersIt) {
  ClientCall client(channel_, "Hold");
  Call* const call = held_.get_future().get();
  std::thread end([this] { EXPECT_TRUE(Shutdown()); });
  call->Finish(OkStatus());
  EXPECT_TRUE(client.Wait().ok());
  end.join();
  EXPECT_FALSE(ClientCall(channel_, "Echo").Wait().ok());
}

TEST_F(ServerTest, TheEndCutsWhatHasNotEndedInTime) {
  ClientCall client(channel_, "Hold");
  Call* const call = held_.get_future().get();
  EXPECT_FALSE(server_->Shutdown(WallClock::now() + std::chrono::milliseconds(10)));
  EXPECT_EQ(client.Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(call->cancelled());
  call->Finish(OkStatus());
}

}  // namespace
}  // namespace colcast::http2
