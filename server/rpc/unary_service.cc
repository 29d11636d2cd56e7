#include "server/rpc/unary_service.h"

#include <utility>

namespace colcast::rpc {

UnaryService::UnaryService(const std::string& name, std::vector<Method> methods)
    : methods_(std::move(methods)) {
  using grpc::internal::RpcServiceMethod;
  paths_.reserve(methods_.size());
  for (const Method& method : methods_) {
    const std::string& path = paths_.emplace_back('/' + name + '/' + method.name);
    AddMethod(new RpcServiceMethod(path.c_str(), RpcServiceMethod::NORMAL_RPC, nullptr));
    MarkMethodRaw(static_cast<int>(paths_.size()) - 1);
  }
}

void UnaryService::Serve(std::shared_ptr<EventLoop> loop, std::shared_ptr<UnreadAnswers> unread) {
  loop_ = std::move(loop);
  unread_ = std::move(unread);
  for (size_t i = 0; i < methods_.size(); ++i) UnaryCall::Await(this, static_cast<int>(i));
}

void UnaryService::Request(int method, grpc::ServerContext* context, grpc::ByteBuffer* request,
                           grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>* writer,
                           MemberEvent<UnaryCall>* arrived) {
  RequestAsyncUnary(method, context, request, writer, loop_->endings(), loop_->arrivals(),
                    arrived->tag());
}

}  // namespace colcast::rpc
