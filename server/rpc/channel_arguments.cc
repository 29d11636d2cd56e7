#include "server/rpc/channel_arguments.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "server/base/available_cores.h"
#include "server/base/log.h"

namespace colcast::rpc {
namespace {

// Per connection. Further calls wait in the client, where they cost nothing if their deadline
// passes.
uint32_t MaxConcurrentStreams() {
  constexpr int kLeast = 100;  // the minimum that RFC 9113 recommends
  constexpr int kPerCore = 16;
  return static_cast<uint32_t>(std::max(kLeast, kPerCore * AvailableCores()));
}

// False for an unknown name.
bool Read(const std::string& name, int64_t value, http2::ConnectionOptions* options) {
  const std::pair<const char*, std::chrono::milliseconds*> times[] = {
      {"grpc.keepalive_time_ms", &options->keepalive_time},
      {"grpc.keepalive_timeout_ms", &options->keepalive_timeout},
      {"grpc.max_connection_idle_ms", &options->max_idle},
      {"grpc.max_connection_age_ms", &options->max_age},
      {"grpc.max_connection_age_grace_ms", &options->max_age_grace},
      {"grpc.http2.min_ping_interval_without_data_ms", &options->min_ping_interval},
      {"grpc.http2.min_recv_ping_interval_without_data_ms", &options->min_ping_interval},
  };
  for (const auto& [known, time] : times) {
    if (name != known) continue;
    *time = std::chrono::milliseconds(value);
    return true;
  }
  const std::pair<const char*, uint32_t*> numbers[] = {
      {"grpc.max_concurrent_streams", &options->max_concurrent_streams},
      {"grpc.max_metadata_size", &options->max_header_bytes},
  };
  for (const auto& [known, number] : numbers) {
    if (name != known) continue;
    *number = static_cast<uint32_t>(value);
    return true;
  }
  return false;
}

}  // namespace

http2::ConnectionOptions ReadChannelArguments(const ChannelArguments& arguments) {
  constexpr int64_t kMost = INT32_MAX;  // the range of gRPC's arguments
  http2::ConnectionOptions options;
  options.max_concurrent_streams = MaxConcurrentStreams();
  for (const auto& [name, text] : arguments) {
    int64_t value = 0;
    const bool is_number = absl::SimpleAtoi(text, &value) && value >= 0 && value <= kMost;
    if (!is_number || !Read(name, value, &options)) {
      LogWarning("--grpc_channel_arguments: " + name + "=" + text + " has no effect");
    }
  }
  return options;
}

}  // namespace colcast::rpc
