// A request's bytes where gRPC received them, for server/wire to read.
#ifndef COLCAST_SERVER_RPC_RECEIVED_BYTES_H_
#define COLCAST_SERVER_RPC_RECEIVED_BYTES_H_

#include <grpcpp/grpcpp.h>

#include <vector>

#include "server/wire/bytes.h"
#include "server/wire/status.h"

namespace colcast::rpc {

class ReceivedBytes {
 public:
  Status Read(const grpc::ByteBuffer& buffer) {
    if (!buffer.Dump(&owners_).ok()) return Internal("the request's message can not be read");
    slices_.clear();
    for (const grpc::Slice& slice : owners_) slices_.push_back({slice.begin(), slice.size()});
    return OkStatus();
  }
  Bytes bytes() const { return Bytes(slices_.data(), slices_.size()); }
  void Release() { owners_.clear(); }

 private:
  std::vector<grpc::Slice> owners_;
  std::vector<Slice> slices_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_RECEIVED_BYTES_H_
