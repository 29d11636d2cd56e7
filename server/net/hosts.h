// Tracks what the clients of each host hold and waste, across connections and protocols.
#ifndef COLCAST_SERVER_NET_HOSTS_H_
#define COLCAST_SERVER_NET_HOSTS_H_

#include <absl/base/thread_annotations.h>

#include <algorithm>
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

namespace colcast::net {

// A limit on the bytes that clients make the server hold, shared among hosts. Thread-safe.
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    size_t max_bytes = 0;           // limit for all hosts together
    size_t max_bytes_per_host = 0;  // lower while the hosts' total exceeds max_bytes
    // If true, each host may hold an equal share of max_bytes even while the total exceeds it, so
    // that no host is refused because of others; and one host at a time may exceed its share with a
    // single item.
    bool may_exceed = false;
  };

  // The bytes that one host holds.
  class Account {
   public:
    size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

   private:
    friend class Budget;
    std::atomic<size_t> bytes_{0};
    std::atomic<bool> exceeds_{false};
    std::atomic<size_t> refused_{0};  // the bytes of the last refused item
    std::atomic<Clock::time_point> refused_at_{Clock::time_point()};
  };

  explicit Budget(const Options& options) : options_(options) {}

  size_t max_bytes() const { return options_.max_bytes; }
  size_t max_bytes_per_host() const { return options_.max_bytes_per_host; }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Whether hosts that hold bytes without making progress should be cut off now.
  bool is_short() const { return bytes() > options_.max_bytes / 2; }

  // Returns false, taking nothing, if the host would exceed its share.
  bool Take(Account* host, size_t bytes) {
    if (bytes == 0) return true;
    const size_t before = host->bytes_.fetch_add(bytes, std::memory_order_relaxed);
    const size_t all = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (before == 0) holders_.fetch_add(1, std::memory_order_relaxed);
    if (before + bytes <= Share(all)) return true;
    if (options_.may_exceed && before == 0 && !exceeds_.exchange(true)) {
      host->exceeds_ = true;
      return true;
    }
    Return(host, bytes);
    host->refused_ = bytes;
    host->refused_at_ = Clock::now();
    return false;
  }

  void Return(Account* host, size_t bytes) {
    if (bytes == 0) return;
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    if (host->bytes_.fetch_sub(bytes, std::memory_order_relaxed) != bytes) return;
    holders_.fetch_sub(1, std::memory_order_relaxed);
    if (host->exceeds_.load(std::memory_order_relaxed) && host->exceeds_.exchange(false)) {
      exceeds_ = false;
    }
  }

  // Whether work for the host's request that arrived at `since` would probably be wasted: Take()
  // would refuse even a single byte, or has refused an item since then and would refuse it again.
  bool IsUsedUp(const Account& host, Clock::time_point since) const {
    if (host.bytes() >= Share(bytes())) return true;
    const size_t refused = host.refused_;
    if (refused == 0 || since >= host.refused_at_.load()) return false;
    const bool holds_none = host.bytes() == 0;
    const bool may_exceed = options_.may_exceed && holds_none && !exceeds_;
    return !may_exceed && host.bytes() + refused > Share(bytes() + refused, holds_none ? 1 : 0);
  }

 private:
  size_t Share(size_t all, size_t more_holders = 0) const {
    if (all <= options_.max_bytes) return options_.max_bytes_per_host;
    if (!options_.may_exceed) return 0;
    const size_t holders = holders_.load(std::memory_order_relaxed) + more_holders;
    return std::min(options_.max_bytes_per_host, options_.max_bytes / std::max<size_t>(1, holders));
  }

  const Options options_;
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> holders_{0};
  std::atomic<bool> exceeds_{false};
};

// Limits the memory of requests. One host may use three quarters of it.
class MemoryLimit : public Budget {
 public:
  explicit MemoryLimit(size_t bytes) : Budget({bytes, bytes - bytes / 4, false}) {}
};

// Bytes that count in a budget, for one host, until they are returned. One thread at a time may
// call Take(); any thread may call Return() and ReturnAll().
class Holding {
 public:
  // Without a budget nothing is counted. `budget` and `host` must outlive this object.
  Holding(Budget* budget, Budget::Account* host) : budget_(budget), host_(host) {}
  ~Holding() { ReturnAll(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Returns false, taking nothing, if the host would exceed its share.
  bool Take(size_t bytes) {
    if (budget_ == nullptr) return true;
    if (!budget_->Take(host_, bytes)) return false;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }
  void Return(size_t bytes) {
    if (budget_ == nullptr) return;
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    budget_->Return(host_, bytes);
  }
  void ReturnAll() {
    if (budget_ != nullptr) budget_->Return(host_, bytes_.exchange(0));
  }

 private:
  Budget* const budget_;
  Budget::Account* const host_;
  std::atomic<size_t> bytes_{0};
};

// CPU time that threads have wasted in the current second. Thread-safe.
class WastedTime {
 public:
  std::chrono::nanoseconds InThisSecond();
  void Add(std::chrono::nanoseconds time);  // negative values forgive some of it

 private:
  std::atomic<int64_t> second_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

struct Host {
  explicit Host(std::string name) : name(std::move(name)) {}

  const std::string name;  // see HostOf()
  Budget::Account unread;  // bytes of unread answers
  Budget::Account bodies;  // bytes of REST requests, and of decompressed gRPC messages
  WastedTime wasted;
  std::atomic<bool> is_suspect{false};  // its last turn wasted time, so the next one is measured
};

class Hosts {
 public:
  // All hosts together may leave twice as many bytes unread as one host.
  Hosts(size_t max_unread_bytes_per_host, size_t max_body_bytes)
      : unread({2 * max_unread_bytes_per_host, max_unread_bytes_per_host, true}),
        bodies(max_body_bytes) {}

  // Returns the same Host for all peers of one host, as long as any reference exists.
  std::shared_ptr<Host> Of(const std::string& peer);

  // Answers that clients have not read yet. HTTP/2 does not force a client to read them.
  Budget unread;
  // Bodies of REST requests, the columns read from them, and decompressed gRPC messages.
  MemoryLimit bodies;
  // The RESOURCE_EXHAUSTED error for a host with too many unread bytes; names the flag to raise.
  Status UnreadRefusal(const Host& host) const;
  // Returns UnreadRefusal() if an answer to a request that arrived at `since` would be refused;
  // else OK.
  Status CheckUnread(const Host& host, Budget::Clock::time_point since) const {
    return unread.IsUsedUp(host.unread, since) ? UnreadRefusal(host) : OkStatus();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Host>> hosts_ ABSL_GUARDED_BY(mutex_);
  size_t prune_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

// The bytes of one answer that count as unread. As thread-safe as Holding. `hosts` and `host` must
// outlive this object.
class UnreadAnswer {
 public:
  UnreadAnswer(Hosts* hosts, Host* host)
      : hosts_(*hosts), host_(*host), held_(&hosts->unread, &host->unread) {}

  size_t bytes() const { return held_.bytes(); }
  // Replaces an earlier count. Small answers do not count, since they take no more memory than
  // their requests. Returns UnreadRefusal() if there is no room.
  Status Count(size_t bytes);
  void Return() { held_.ReturnAll(); }

 private:
  const Hosts& hosts_;
  const Host& host_;
  Holding held_;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_HOSTS_H_
