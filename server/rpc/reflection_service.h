// grpc.reflection.v1alpha.ServerReflection: lists services and the descriptors of their messages,
// for clients without .proto files. Implemented here because gRPC's own (libgrpc++_reflection) is a
// synchronous service, for which the server would keep a pool of polling threads.
#ifndef COLCAST_SERVER_RPC_REFLECTION_SERVICE_H_
#define COLCAST_SERVER_RPC_REFLECTION_SERVICE_H_

#include <string>
#include <vector>

#include "server/http2/call.h"

namespace colcast::rpc {

inline constexpr char kReflectionService[] = "grpc.reflection.v1alpha.ServerReflection";
inline constexpr char kReflectionMethod[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// Answers with the descriptors linked into this program. `services` are the names to list.
http2::Method ReflectionMethod(std::vector<std::string> services);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_REFLECTION_SERVICE_H_
