// Limits on what an HTTP/2 connection may ask of gRPC 1.51, which has none of its own.
//
// A header block over many CONTINUATION frames is copied as a whole for each of them
// (CVE-2023-33953), and a connection may open and reset calls as fast as it can write them
// (CVE-2023-44487), while all other connections wait. The linker puts this file's functions in
// front of gRPC's own (--wrap, in CMakeLists.txt); over a limit gRPC closes the connection.
#ifndef COLCAST_SERVER_RPC_HTTP2_LIMITS_H_
#define COLCAST_SERVER_RPC_HTTP2_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace colcast::rpc {

// Of every server in this process. `max_header_block_bytes` counts frames after the first one of
// a block; it should be more than grpc.max_metadata_size, over which gRPC refuses the call and
// keeps the connection. `max_resets_per_second` is what a connection may go on with; it may also
// be the number of resets at once.
void SetHttp2Limits(size_t max_header_block_bytes, double max_resets_per_second);

// Implementation details follow.

// The header blocks that are not complete yet, by connection.
class HeaderBlocks {
 public:
  // A frame of a block begins, the last one or not.
  void BeginFrame(const void* connection, bool last);
  // False if the block is longer than `max_bytes`.
  bool Add(const void* connection, size_t bytes, size_t max_bytes);
  void Forget(const void* connection);
  bool empty() const { return bytes_.empty(); }

 private:
  std::unordered_map<const void*, size_t> bytes_;
};

// Events of each connection, of which so many per second are fine (a leaky bucket).
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts an event. False if there were more than `per_second`, beyond as many at once.
  bool Allow(const void* connection, double per_second, Clock::time_point now);
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double level = 0;
    Clock::time_point since;
  };

  // Connections do not say when they end: those without recent events are dropped.
  void DropEmpty(double per_second, Clock::time_point now);

  std::unordered_map<const void*, Bucket> buckets_;
  size_t drop_at_ = 64;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_HTTP2_LIMITS_H_
