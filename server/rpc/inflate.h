// Compressed messages wait as they came and are inflated by who reads them, up to a limit.
//
// gRPC 1.51 would inflate each as it comes, on the thread that reads all connections, and look at
// its size afterwards: a megabyte of compressed zeros would take a gigabyte as long as the call
// waits. So it is told not to (grpc.per_message_decompression, in grpc_server.cc).
#ifndef COLCAST_SERVER_RPC_INFLATE_H_
#define COLCAST_SERVER_RPC_INFLATE_H_

#include <grpc/compression.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>

#include "server/base/status.h"

namespace colcast::rpc {

// How a message came; GRPC_COMPRESS_NONE for most.
grpc_compression_algorithm CompressionOf(const grpc::ByteBuffer& message);

// Puts what a compressed message says in its place; leaves others as they are. RESOURCE_EXHAUSTED
// where that is more than `max_bytes`, or than there is memory; INTERNAL, as gRPC has it, for bytes
// that do not inflate. Then the message stays as it is.
Status Inflate(size_t max_bytes, grpc::ByteBuffer* message);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_INFLATE_H_
