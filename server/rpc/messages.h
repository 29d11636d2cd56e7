// Protobuf's messages, from gRPC's bytes and back, and the methods that are answered with them:
// what is not hot.
#ifndef COLCAST_SERVER_RPC_MESSAGES_H_
#define COLCAST_SERVER_RPC_MESSAGES_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "server/base/status.h"
#include "server/rpc/inflate.h"
#include "server/rpc/unary_service.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::rpc {

// Requests that become protobuf objects are read on the event loop's thread, for which all others
// wait: none may be larger than gRPC lets any message be by default.
inline constexpr size_t kMaxMessageBytes = 4 << 20;

// INVALID_ARGUMENT if `bytes` are no such message, RESOURCE_EXHAUSTED if they are too many.
template <typename Message>
Status ReadMessage(const grpc::ByteBuffer& bytes, Message* message) {
  if (bytes.Length() > kMaxMessageBytes) {
    return ResourceExhausted("the ", Message::descriptor()->name(), " has ", bytes.Length(),
                             " bytes; at most ", kMaxMessageBytes, " are read");
  }
  grpc::ByteBuffer copy(bytes);
  if (Status status = Inflate(kMaxMessageBytes, &copy); !status.ok()) return status;
  if (grpc::SerializationTraits<Message>::Deserialize(&copy, message).ok()) return OkStatus();
  return InvalidArgument("malformed ", Message::descriptor()->name(),
                         ": protobuf cannot parse its ", bytes.Length(), " bytes");
}

template <typename Message>
Status WriteMessage(const Message& message, grpc::ByteBuffer* bytes) {
  bool own_buffer = false;
  const grpc::Status written =
      grpc::SerializationTraits<Message>::Serialize(message, bytes, &own_buffer);
  if (written.ok()) return OkStatus();
  return Internal("the ", Message::descriptor()->name(),
                  " cannot be sent: ", written.error_message());
}

// A unary call whose request and response are read and written as protobuf objects.
template <typename Request, typename Response>
class MessageCall {
 public:
  explicit MessageCall(UnaryCall* call) : call_(call) {}

  // As ReadMessage().
  Status Read() { return ReadMessage(call_->request(), &request_); }
  const Request& request() const { return request_; }
  Response* response() { return &response_; }

  // Once, as UnaryCall::Finish.
  void Finish(const Status& status) {
    call_->Finish(status.ok() ? WriteMessage(response_, call_->response()) : status);
  }

 private:
  UnaryCall* const call_;
  Request request_;
  Response response_;
};

// A method that is answered at once, on the event loop's thread.
template <typename Request, typename Response>
UnaryService::Method MessageMethod(std::string name,
                                   std::function<Status(const Request&, Response*)> answer) {
  return {std::move(name), [answer = std::move(answer)](UnaryCall* call) {
            MessageCall<Request, Response> message(call);
            Status status = message.Read();
            if (status.ok()) status = answer(message.request(), message.response());
            message.Finish(status);
          }};
}

// From protobuf's form to that of server/wire.
inline ModelSpec FromProto(const tensorflow::serving::ModelSpec& proto) {
  ModelSpec spec;
  spec.name = proto.name();
  spec.signature_name = proto.signature_name();
  if (proto.has_version()) spec.version = proto.version().value();
  if (proto.version_choice_case() == tensorflow::serving::ModelSpec::kVersionLabel) {
    spec.version_label = proto.version_label();
  }
  return spec;
}

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_MESSAGES_H_
