// A streaming method, of a service that may have others elsewhere, whose messages stay bytes.
#ifndef COLCAST_SERVER_RPC_STREAM_SERVICE_H_
#define COLCAST_SERVER_RPC_STREAM_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "server/rpc/event_loop.h"
#include "server/rpc/stream_call.h"

namespace colcast::rpc {

class StreamService final : public grpc::Service {
 public:
  using Opener = std::function<std::unique_ptr<StreamHandler>(StreamCall*)>;

  // `path` is "/grpc.health.v1.Health/Watch"; `open` makes what handles a call.
  StreamService(const std::string& path, Opener open);

  // Handles calls from now until Stop(). The server has been built with the service and with the
  // loop.
  void Serve(EventLoop* loop);

  // Ends the calls, with CANCELLED, and returns when they are gone. Before the server shuts down,
  // which would wait for them as long as their clients like. Later ones are cancelled.
  void Stop();

  // For StreamCall: the next call; what handles it; its arrival, false if it comes too late; and
  // its end, which deletes it.
  void Request(grpc::ServerContext* context,
               grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream,
               MemberEvent<StreamCall>* arrived);
  std::unique_ptr<StreamHandler> Open(StreamCall* call) { return open_(call); }
  bool Enter(StreamCall* call);
  void Leave(StreamCall* call);

 private:
  const std::string path_;  // gRPC keeps a pointer to it
  const Opener open_;
  EventLoop* loop_ = nullptr;

  std::mutex mutex_;
  std::condition_variable all_left_;
  std::unordered_set<StreamCall*> calls_;
  bool stopped_ = false;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_STREAM_SERVICE_H_
