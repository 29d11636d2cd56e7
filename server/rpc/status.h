// From the server's status to gRPC's.
#ifndef COLCAST_SERVER_RPC_STATUS_H_
#define COLCAST_SERVER_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "server/wire/status.h"

namespace colcast::rpc {

inline grpc::Status ToGrpc(const Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code), status.message);
}

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_STATUS_H_
