#include "server/rpc/unary_service.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/event_loop.h"
#include "server/rpc/unary_call.h"

namespace colcast::rpc {
namespace {

constexpr size_t kMaxUnreadBytes = 1 << 20;

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  }
  return text;
}

// A call that a client has started.
class ClientCall {
 public:
  ClientCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
    const grpc::Slice text("hello");
    const grpc::ByteBuffer request(&text, 1);
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

class UnaryServiceTest : public ::testing::Test {
 protected:
  UnaryServiceTest() : service_("test.Service", Methods()) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    auto loop = std::make_shared<EventLoop>(&builder);
    server_ = builder.BuildAndStart();
    service_.Serve(loop, std::make_shared<UnreadAnswers>(kMaxUnreadBytes));
    loop->Start(/*num_threads=*/1);
    loop_ = loop;
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
  }
  ~UnaryServiceTest() override { Shutdown(); }

  void Shutdown() {
    if (loop_ == nullptr) return;
    server_->Shutdown();
    loop_->Shutdown();
    loop_ = nullptr;
  }

  std::promise<UnaryCall*> held_;
  std::atomic<bool> spinning_{true};
  UnaryService service_;
  std::shared_ptr<EventLoop> loop_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;

 private:
  std::vector<UnaryService::Method> Methods() {
    return {{"Echo",
             [](UnaryCall* call) {
               *call->response() = call->request();
               call->Finish(OkStatus());
             }},
            {"Large",
             [](UnaryCall* call) {
               const grpc::Slice large(kMaxUnreadBytes);
               *call->response() = grpc::ByteBuffer(&large, 1);
               call->Finish(OkStatus());
             }},
            {"Fail", [](UnaryCall* call) { call->Finish(InvalidArgument("not like this")); }},
            {"Hold", [this](UnaryCall* call) { held_.set_value(call); }},
            {"Spin",
             [this](UnaryCall* call) {
               while (spinning_) {
               }
               call->Finish(OkStatus());
             }},
            {"StopSpinning", [this](UnaryCall* call) {
               spinning_ = false;
               call->Finish(OkStatus());
             }}};
  }
};

TEST_F(UnaryServiceTest, CallsAreAnsweredByNameOneAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    ClientCall echo(channel_, "Echo");
    EXPECT_TRUE(echo.Wait().ok());
    EXPECT_EQ(echo.response(), "hello");
    const grpc::Status failed = ClientCall(channel_, "Fail").Wait();
    EXPECT_EQ(failed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(failed.error_message(), "not like this");
  }
  EXPECT_EQ(ClientCall(channel_, "Guess").Wait().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(UnaryServiceTest, ACallInHandLearnsThatItsClientHungUp) {
  ClientCall client(channel_, "Hold");
  UnaryCall* const call = held_.get_future().get();
  EXPECT_FALSE(call->cancelled());
  client.Cancel();
  EXPECT_EQ(client.Wait().error_code(), grpc::StatusCode::CANCELLED);
  while (!call->cancelled()) std::this_thread::yield();
  call->Finish(OkStatus());
}

TEST_F(UnaryServiceTest, AThreadThatIsKeptBusyDoesNotKeepOthersFromTheirAnswers) {
  for (int i = 0; i < 3; ++i) {
    spinning_ = true;
    ClientCall busy(channel_, "Spin");
    EXPECT_TRUE(ClientCall(channel_, "Echo").Wait().ok());
    EXPECT_TRUE(ClientCall(channel_, "StopSpinning").Wait().ok());
    EXPECT_TRUE(busy.Wait().ok());
  }
}

TEST_F(UnaryServiceTest, AnAnswerCountsUntilItHasBeenSent) {
  ClientCall first(channel_, "Hold");
  UnaryCall* const call = held_.get_future().get();
  const grpc::Slice large(2 * kMaxUnreadBytes);
  *call->response() = grpc::ByteBuffer(&large, 1);
  EXPECT_TRUE(call->CountResponse(call->response()->Length()).ok());
  EXPECT_EQ(call->CheckClientReads().code, StatusCode::kResourceExhausted);
  EXPECT_TRUE(ClientCall(channel_, "Echo").Wait().ok());  // small
  EXPECT_EQ(ClientCall(channel_, "Large").Wait().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  call->Finish(OkStatus());
  EXPECT_TRUE(first.Wait().ok());
  while (!ClientCall(channel_, "Large").Wait().ok()) std::this_thread::yield();
}

TEST_F(UnaryServiceTest, TheEndWaitsForACallInHandAndAnswersIt) {
  ClientCall client(channel_, "Hold");
  UnaryCall* const call = held_.get_future().get();
  std::thread end([this] { Shutdown(); });
  call->Finish(OkStatus());
  EXPECT_TRUE(client.Wait().ok());
  end.join();
  EXPECT_FALSE(ClientCall(channel_, "Echo").Wait().ok());
}

}  // namespace
}  // namespace colcast::rpc
