#include "server/net/hosts.h"

#include <iterator>

#include "server/net/socket.h"
#include "server/scheduling/request_queue.h"

namespace colcast::net {

std::chrono::nanoseconds WastedTime::InThisSecond() {
  if (nanoseconds_.load(std::memory_order_relaxed) == 0) return {};
  const int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(scheduling::Clock::now().time_since_epoch())
          .count();
  if (second_.exchange(now, std::memory_order_relaxed) != now) {
    nanoseconds_.store(0, std::memory_order_relaxed);
  }
  return std::chrono::nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
}

void WastedTime::Add(std::chrono::nanoseconds time) {
  if (nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed) + time.count() < 0) {
    nanoseconds_.store(0, std::memory_order_relaxed);
  }
}

std::shared_ptr<Host> Hosts::Of(const std::string& peer) {
  std::string name = HostOf(peer);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<Host>& known = hosts_[name];
  std::shared_ptr<Host> host = known.lock();
  if (host != nullptr) return host;
  known = host = std::make_shared<Host>(std::move(name));
  if (hosts_.size() > prune_at_) {
    for (auto each = hosts_.begin(); each != hosts_.end();) {
      each = each->second.expired() ? hosts_.erase(each) : std::next(each);
    }
    prune_at_ = 2 * hosts_.size() + 64;
  }
  return host;
}

Status Hosts::UnreadRefusal(const Host& host) const {
  return ResourceExhausted("clients at ", host.name, " have not read ", host.unread.bytes(),
                           " bytes of answers to earlier requests, and all hosts together ",
                           unread.bytes(), "; at most ", unread.max_bytes_per_host(), " and ",
                           unread.max_bytes(), " may wait (--max_unread_response_bytes)");
}

Status UnreadAnswer::Count(size_t bytes) {
  constexpr size_t kMostUncounted = 4 << 10;
  if (bytes <= kMostUncounted) bytes = 0;
  if (bytes == this->bytes()) return OkStatus();
  Return();
  return held_.Take(bytes) ? OkStatus() : hosts_.UnreadRefusal(host_);
}

}  // namespace colcast::net
