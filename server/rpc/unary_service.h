// A service whose methods are unary and whose messages stay bytes.
#ifndef COLCAST_SERVER_RPC_UNARY_SERVICE_H_
#define COLCAST_SERVER_RPC_UNARY_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/rpc/event_loop.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/unread_answers.h"

namespace colcast::rpc {

class UnaryService final : public grpc::Service {
 public:
  struct Method {
    std::string name;
    // Has the call finished, now or later. Runs on an event loop's thread.
    std::function<void(UnaryCall*)> handle;
  };

  // `name` is the full one: "tensorflow.serving.PredictionService".
  UnaryService(const std::string& name, std::vector<Method> methods);

  // Handles calls from now until the server shuts down. The server has been built with the service
  // and with the loop. `unread` counts the answers, those of other services, too.
  void Serve(std::shared_ptr<EventLoop> loop, std::shared_ptr<UnreadAnswers> unread);

  std::shared_ptr<EventLoop> loop() const { return loop_; }
  const std::shared_ptr<UnreadAnswers>& unread() const { return unread_; }

  // For UnaryCall: the next call of method number `method`, and what is done with it.
  void Request(int method, grpc::ServerContext* context, grpc::ByteBuffer* request,
               grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>* writer,
               MemberEvent<UnaryCall>* arrived);
  void Handle(int method, UnaryCall* call) { methods_[method].handle(call); }

 private:
  const std::vector<Method> methods_;
  std::vector<std::string> paths_;  // gRPC keeps pointers to them: they do not move
  std::shared_ptr<EventLoop> loop_;
  std::shared_ptr<UnreadAnswers> unread_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_UNARY_SERVICE_H_
