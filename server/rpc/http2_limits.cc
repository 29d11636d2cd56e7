#include "server/rpc/http2_limits.h"

#include <absl/status/status.h>
#include <grpc/slice.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace colcast::rpc {
namespace {

// What a frame costs, however short it is.
constexpr size_t kFrameBytes = 64;

std::atomic<size_t> max_header_block_bytes{std::numeric_limits<size_t>::max()};
std::atomic<double> max_resets_per_second{std::numeric_limits<double>::infinity()};

std::mutex mutex;
HeaderBlocks header_blocks;
RateLimit resets;
std::atomic<bool> some_blocks_incomplete{false};

double Drained(double level, RateLimit::Clock::duration elapsed, double per_second) {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  return std::max(0.0, level - seconds * per_second);
}

void BeginHeaderFrame(const void* connection, bool last) {
  if (last && !some_blocks_incomplete) return;
  const std::lock_guard<std::mutex> lock(mutex);
  header_blocks.BeginFrame(connection, last);
  some_blocks_incomplete = !header_blocks.empty();
}

bool AllowHeaderBytes(const void* connection, size_t bytes) {
  if (!some_blocks_incomplete) return true;
  const std::lock_guard<std::mutex> lock(mutex);
  return header_blocks.Add(connection, bytes + kFrameBytes, max_header_block_bytes);
}

void ForgetConnection(const void* connection) {
  if (!some_blocks_incomplete) return;
  const std::lock_guard<std::mutex> lock(mutex);
  header_blocks.Forget(connection);
  some_blocks_incomplete = !header_blocks.empty();
}

bool AllowReset(const void* connection) {
  const std::lock_guard<std::mutex> lock(mutex);
  return resets.Allow(connection, max_resets_per_second, RateLimit::Clock::now());
}

}  // namespace

void SetHttp2Limits(size_t header_block_bytes, double resets_per_second) {
  max_header_block_bytes = header_block_bytes;
  max_resets_per_second = resets_per_second;
}

void HeaderBlocks::BeginFrame(const void* connection, bool last) {
  if (last) {
    bytes_.erase(connection);
  } else {
    bytes_.try_emplace(connection, 0);
  }
}

bool HeaderBlocks::Add(const void* connection, size_t bytes, size_t max_bytes) {
  const auto block = bytes_.find(connection);
  if (block == bytes_.end()) return true;
  block->second += bytes;
  return block->second <= max_bytes;
}

void HeaderBlocks::Forget(const void* connection) { bytes_.erase(connection); }

bool RateLimit::Allow(const void* connection, double per_second, Clock::time_point now) {
  if (buckets_.size() >= drop_at_) DropEmpty(per_second, now);
  const auto [place, is_new] = buckets_.try_emplace(connection);
  Bucket& bucket = place->second;
  if (!is_new) bucket.level = Drained(bucket.level, now - bucket.since, per_second);
  bucket.since = now;
  bucket.level += 1;
  return bucket.level <= per_second;
}

void RateLimit::DropEmpty(double per_second, Clock::time_point now) {
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    const bool empty = Drained(bucket->second.level, now - bucket->second.since, per_second) == 0;
    bucket = empty ? buckets_.erase(bucket) : std::next(bucket);
  }
  drop_at_ = std::max<size_t>(64, 2 * buckets_.size());
}

}  // namespace colcast::rpc

// gRPC's own names for what is called here, all of it private to its HTTP/2 transport.
struct grpc_chttp2_transport;
struct grpc_chttp2_stream;

extern "C" {

// void grpc_core::HPackParser::BeginFrame(grpc_metadata_batch*, uint32_t metadata_size_limit,
//     Boundary, Priority, LogInfo): for each HEADERS and CONTINUATION frame. LogInfo is a struct of
// eight bytes; Boundary 0 says that the block goes on in another frame.
#define BEGIN_FRAME \
  _ZN9grpc_core11HPackParser10BeginFrameEP19grpc_metadata_batchjNS0_8BoundaryENS0_8PriorityENS0_7LogInfoE
#define JOIN(a, b) JOIN_EXPANDED(a, b)
#define JOIN_EXPANDED(a, b) a##b
#define REAL(name) JOIN(__real_, name)
#define WRAP(name) JOIN(__wrap_, name)

void REAL(BEGIN_FRAME)(void* parser, void* metadata, uint32_t limit, uint8_t boundary,
                       uint8_t priority, uint64_t log_info);

void WRAP(BEGIN_FRAME)(void* parser, void* metadata, uint32_t limit, uint8_t boundary,
                       uint8_t priority, uint64_t log_info) {
  colcast::rpc::BeginHeaderFrame(parser, /*last=*/boundary != 0);
  REAL(BEGIN_FRAME)(parser, metadata, limit, boundary, priority, log_info);
}

// grpc_core::HPackParser::~HPackParser(), at the end of a connection.
#define END_PARSER _ZN9grpc_core11HPackParserD1Ev

void REAL(END_PARSER)(void* parser);

void WRAP(END_PARSER)(void* parser) {
  colcast::rpc::ForgetConnection(parser);
  REAL(END_PARSER)(parser);
}
}

// absl::Status NAME(void* parser, grpc_chttp2_transport*, grpc_chttp2_stream*, const grpc_slice&,
//     int is_last): the payload of a frame, in one slice or several. An error ends the connection.
#define PARSE_ARGUMENTS                                                       \
  void *parser, grpc_chttp2_transport *transport, grpc_chttp2_stream *stream, \
      const grpc_slice &slice, int is_last

#define PARSE_HEADERS \
  _Z31grpc_chttp2_header_parser_parsePvP21grpc_chttp2_transportP18grpc_chttp2_streamRK10grpc_slicei
#define PARSE_RESET \
  _Z35grpc_chttp2_rst_stream_parser_parsePvP21grpc_chttp2_transportP18grpc_chttp2_streamRK10grpc_slicei

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"
extern "C" {

absl::Status REAL(PARSE_HEADERS)(PARSE_ARGUMENTS);
absl::Status REAL(PARSE_RESET)(PARSE_ARGUMENTS);

absl::Status WRAP(PARSE_HEADERS)(PARSE_ARGUMENTS) {
  if (!colcast::rpc::AllowHeaderBytes(parser, GRPC_SLICE_LENGTH(slice))) {
    return absl::ResourceExhaustedError("a header block is too long");
  }
  return REAL(PARSE_HEADERS)(parser, transport, stream, slice, is_last);
}

absl::Status WRAP(PARSE_RESET)(PARSE_ARGUMENTS) {
  if (is_last != 0 && !colcast::rpc::AllowReset(transport)) {
    return absl::ResourceExhaustedError("too many calls are reset");
  }
  return REAL(PARSE_RESET)(parser, transport, stream, slice, is_last);
}
}
#pragma GCC diagnostic pop
