// Converts gRPC's bytes to protobuf messages and back, and defines methods that use them. Not used
// on the hot path.
#ifndef COLCAST_SERVER_RPC_MESSAGES_H_
#define COLCAST_SERVER_RPC_MESSAGES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/base/status.h"
#include "server/http2/call.h"
#include "server/http2/grpc.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::rpc {

using http2::Call;
using http2::Message;
using http2::Method;
using http2::Methods;

// Protobuf requests are parsed on the receiving thread while other calls wait, so their limit is
// low: gRPC's default.
inline constexpr size_t kMaxMessageBytes = 4 << 20;

// Returns INVALID_ARGUMENT if `bytes` are not a `Proto`, and RESOURCE_EXHAUSTED for more than
// kMaxMessageBytes.
template <typename Proto>
Status ReadMessage(const Message& bytes, Proto* proto) {
  if (bytes.size() > kMaxMessageBytes) {
    return ResourceExhausted("the ", Proto::descriptor()->name(), " has ", bytes.size(),
                             " bytes; at most ", kMaxMessageBytes, " are read");
  }
  Message plain(bytes);
  if (Status status = http2::Inflate(kMaxMessageBytes, &plain); !status.ok()) return status;
  const Bytes all = plain.bytes();
  const bool parsed = all.contiguous()
                          ? proto->ParseFromArray(all.data(), static_cast<int>(all.size()))
                          : proto->ParseFromString(all.ToString());
  if (parsed) return OkStatus();
  return InvalidArgument("malformed ", Proto::descriptor()->name(), ": protobuf cannot parse its ",
                         bytes.size(), " bytes");
}

// Returns INTERNAL for a message longer than 2 GiB, which protobuf cannot write.
template <typename Proto>
Status WriteMessage(const Proto& proto, Message* bytes) {
  const auto text = std::make_shared<std::string>();
  if (!proto.SerializeToString(text.get())) {
    return Internal("the ", Proto::descriptor()->name(), " cannot be sent: it is too large");
  }
  bytes->Clear();
  bytes->Append(text, reinterpret_cast<const uint8_t*>(text->data()), text->size());
  return OkStatus();
}

// A unary call with protobuf objects as request and response.
template <typename Request, typename Response>
class MessageCall {
 public:
  explicit MessageCall(Call* call) : call_(call) {}

  Status Read() { return ReadMessage(call_->request(), &request_); }
  const Request& request() const { return request_; }
  Response* response() { return &response_; }

  // Call once; see Call::Finish().
  void Finish(const Status& status) {
    call_->Finish(status.ok() ? WriteMessage(response_, call_->response()) : status);
  }

 private:
  Call* const call_;
  Request request_;
  Response response_;
};

template <typename Request, typename Response>
Method MethodOf(std::function<Status(const Request&, Response*)> answer) {
  return {[answer = std::move(answer)](Call* call) {
    MessageCall<Request, Response> message(call);
    Status status = message.Read();
    if (status.ok()) status = answer(message.request(), message.response());
    message.Finish(status);
  }};
}

// A method that is answered immediately: answer(const Request& request, Response* response).
template <typename Answer>
Method MessageMethod(Answer answer) {
  return MethodOf(std::function(std::move(answer)));
}

// "/tensorflow.serving.PredictionService/Predict"
inline std::string PathOf(const char* service, const char* method) {
  return std::string("/") + service + '/' + method;
}

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
