#include "server/rpc/stream_service.h"

#include <grpcpp/impl/rpc_service_method.h>

#include <chrono>
#include <utility>

namespace colcast::rpc {
namespace {

// How long a client that does not read what it is sent may keep the server from ending.
constexpr std::chrono::seconds kPatience(1);

}  // namespace

StreamService::StreamService(const std::string& path, Opener open)
    : path_(path), open_(std::move(open)) {
  using grpc::internal::RpcServiceMethod;
  AddMethod(new RpcServiceMethod(path_.c_str(), RpcServiceMethod::BIDI_STREAMING, nullptr));
  MarkMethodRaw(0);
}

void StreamService::Serve(EventLoop* loop) {
  loop_ = loop;
  StreamCall::Await(this);
}

void StreamService::Stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  const Status stopping = Error(StatusCode::kCancelled, "the server is shutting down");
  for (StreamCall* call : calls_) call->Finish(stopping);
  const auto none = [this] { return calls_.empty(); };
  if (all_left_.wait_for(lock, kPatience, none)) return;
  for (StreamCall* call : calls_) call->Cancel();
  all_left_.wait(lock, none);
}

void StreamService::Request(
    grpc::ServerContext* context,
    grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream,
    MemberEvent<StreamCall>* arrived) {
  RequestAsyncBidiStreaming(0, context, stream, loop_->arrivals(), loop_->arrivals(),
                            arrived->tag());
}

bool StreamService::Enter(StreamCall* call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stopped_) calls_.insert(call);
  return !stopped_;
}

void StreamService::Leave(StreamCall* call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_.erase(call);
  delete call;
  if (calls_.empty()) all_left_.notify_all();
}

}  // namespace colcast::rpc
