// A call of a unary method: a message in, a message or a status out, both as bytes.
#ifndef COLCAST_SERVER_RPC_UNARY_CALL_H_
#define COLCAST_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/base/status.h"
#include "server/rpc/event_loop.h"
#include "server/rpc/unread_answers.h"

namespace colcast::rpc {

class UnaryService;

// From the server's status to gRPC's.
grpc::Status ToGrpc(const Status& status);

// Owns itself, until it has been finished and gRPC is done with it.
class UnaryCall {
 public:
  // Waits for the next call of the service's method number `method`.
  static void Await(UnaryService* service, int method) { new UnaryCall(service, method); }

  // As it came, so perhaps compressed.
  const grpc::ByteBuffer& request() const { return request_; }
  void set_request(const grpc::ByteBuffer& request) { request_ = request; }
  grpc::ByteBuffer* response() { return &response_; }
  std::chrono::system_clock::time_point deadline() const { return context_.deadline(); }
  // A header that the client has sent; gRPC has read others itself.
  std::optional<std::string> Metadata(const char* name) const;
  void AddTrailer(const std::string& name, const std::string& value) {
    context_.AddTrailingMetadata(name, value);
  }
  std::string peer() const { return context_.peer(); }  // server/rpc/peer.h
  // The same for all calls of one connection, and of all unix sockets.
  uint64_t connection() const { return std::hash<std::string>()(context_.peer()); }
  // Where what the call waits for may happen: its loop's threads handle it.
  grpc::CompletionQueue* events() const;
  // Whether the client has gone, as known when endings were last handled: with each Finish(), or a
  // moment ago on an idle server.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // RESOURCE_EXHAUSTED if the client has not read so many answers that it gets no more.
  Status CheckClientReads() const;

  // Counts a response of so many bytes among what the client has not read, before memory is taken
  // for it: as CheckClientReads().
  Status CountResponse(size_t bytes);

  // Sends response(), or the status if that is an error. Once, on any thread; the call may be gone
  // when this returns. A response that was not counted is, and is not sent if that is an error.
  void Finish(Status status);

 private:
  static constexpr int kEndings = 2;  // ended_ and sent_

  UnaryCall(UnaryService* service, int method);
  ~UnaryCall();
  void Arrived(bool ok);
  void Ended(bool ok);
  void Sent(bool ok);
  void Release();
  void CountNoResponse();
  template <typename Count>
  Status OnceEndsAreHandled(const Count& count) const;

  UnaryService* const service_;
  const int method_;
  std::shared_ptr<UnreadAnswers> unread_;  // null unless the response is counted there
  std::string host_;
  size_t counted_bytes_ = 0;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  MemberEvent<UnaryCall> arrived_{this, &UnaryCall::Arrived};
  MemberEvent<UnaryCall> ended_{this, &UnaryCall::Ended};
  MemberEvent<UnaryCall> sent_{this, &UnaryCall::Sent};
  std::atomic<bool> cancelled_{false};
  std::atomic<int> events_to_come_{kEndings};
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_UNARY_CALL_H_
