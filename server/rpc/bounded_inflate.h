// Compressed messages that gRPC receives, inflated up to a limit.
//
// gRPC 1.51 inflates a message completely before it compares its size with the largest one allowed,
// so a megabyte of compressed zeros would take a gigabyte of memory. The linker puts this file's
// function in the place of gRPC's own (--wrap, in CMakeLists.txt).
#ifndef COLCAST_SERVER_RPC_BOUNDED_INFLATE_H_
#define COLCAST_SERVER_RPC_BOUNDED_INFLATE_H_

#include <cstddef>

namespace colcast::rpc {

// Of every server in this process. A longer message arrives cut off after one byte more, which is
// too long for gRPC: it answers RESOURCE_EXHAUSTED.
void SetMaxInflatedBytes(size_t max_bytes);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_BOUNDED_INFLATE_H_
