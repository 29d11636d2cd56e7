// Tracks what the clients of each host hold and waste, across connections and protocols.
#ifndef COLCAST_SERVER_NET_HOSTS_H_
#define COLCAST_SERVER_NET_HOSTS_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/base/status.h"
#include "server/net/budget.h"

namespace colcast::net {

// Thread time wasted in the current second. Thread-safe.
class WastedTime {
 public:
  std::chrono::nanoseconds InThisSecond();
  void Add(std::chrono::nanoseconds time);  // negative to forgive some

 private:
  std::atomic<int64_t> second_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

struct Host {
  explicit Host(std::string name) : name(std::move(name)) {}

  const std::string name;  // see HostOf()
  Budget::Account unread;  // of unread answers
  Budget::Account bodies;  // REST requests, and decompressed gRPC messages
  WastedTime wasted;
  std::atomic<bool> is_suspect{false};  // its last turn wasted time, so the next one is measured
};

class Hosts {
 public:
  // All hosts together may hold twice as much unread.
  Hosts(size_t max_unread_bytes_per_host, size_t max_body_bytes)
      : unread({2 * max_unread_bytes_per_host, max_unread_bytes_per_host, true}),
        bodies(max_body_bytes) {}

  // Returns the same Host for all peers of one host, as long as any reference exists.
  std::shared_ptr<Host> Of(const std::string& peer);

  // Answers that clients have not read yet: HTTP/2 does not force a client to read them.
  Budget unread;
  // Bodies of REST requests, the columns read from them, and decompressed gRPC messages.
  MemoryLimit bodies;
  // RESOURCE_EXHAUSTED, naming the flag.
  Status UnreadRefusal(const Host& host) const;
  // UnreadRefusal() if an answer to a request that arrived at `since` would be refused; else OK.
  Status CheckUnread(const Host& host, Budget::Clock::time_point since) const {
    return unread.IsUsedUp(host.unread, since) ? UnreadRefusal(host) : OkStatus();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Host>> hosts_ ABSL_GUARDED_BY(mutex_);
  size_t prune_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_HOSTS_H_
