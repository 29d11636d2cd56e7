// A client's connection, independent of the protocol.
//
// At most one thread owns the connection at any time: the one that found work to do. Other threads
// that bring work, such as an answer, leave it to the owner without waiting.
#ifndef COLCAST_SERVER_NET_CONNECTION_H_
#define COLCAST_SERVER_NET_CONNECTION_H_

#include <absl/base/thread_annotations.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/net/hosts.h"
#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::net {

// The number of reads after which other connections get their turn.
inline constexpr int kReadsPerTurn = 4;

// Tracks a server's open connections: waits until all have closed, and tells new ones whether the
// server is shutting down. All methods may be called from any thread.
class OpenConnections {
 public:
  // kDraining serves the calls in flight, kClosing nothing. A connection reads the phase after
  // Begin(), so a thread that sets the phase and then lists the connections finds every one that
  // may have read the previous phase.
  enum class Phase { kServing, kDraining, kClosing };

  struct Leave {
    void operator()(OpenConnections* open) const { open->Remove(); }
  };
  // A connection counts as open as long as it holds a Place.
  using Place = std::unique_ptr<OpenConnections, Leave>;

  Place Add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    return Place(this);
  }

  int count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  Phase phase() const { return phase_; }
  // Phases only advance.
  void Enter(Phase phase) { phase_ = std::max(phase, phase_.load()); }
  // Returns false if connections are still open at `deadline`.
  bool WaitForNone(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    return none_.wait_until(lock, deadline,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; });
  }

 private:
  void Remove() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  std::atomic<Phase> phase_{Phase::kServing};
  mutable std::mutex mutex_;
  std::condition_variable none_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Counts what one turn did, to detect abuse. Calls and bytes pay for a thread's time; items cost
// time. A turn that costs more than it pays is wasteful, and a host may waste only so much time per
// second.
struct Use {
  int calls = 0;     // complete calls received
  size_t bytes = 0;  // size of received messages and sent answers
  int items = 0;     // frames, headers, chunks and TLS records read
};

class Connection : public Pollable, public std::enable_shared_from_this<Connection> {
 public:
  const std::string& peer() const { return peer_; }
  uint64_t number() const { return number_; }
  const std::shared_ptr<Host>& host() const { return host_; }
  Poller& poller() const { return *poller_; }

  // These may be called on any thread.
  void Happened(uint32_t events) final;
  void PostTimer() final { Do(kTime); }
  void CloseAtOnce() final { Do(kClose); }
  // Closes the connection if it IsIdle(). Sets last_use() to now, so that CloseIdlest() does not
  // choose the connection again.
  void MakeRoom();
  // Determines the order in which CloseIdlest() closes connections: first those without a complete
  // call, then the longest unused. May be called on any thread; exact to a second.
  std::pair<bool, scheduling::Clock::time_point> last_use() const { return {had_call_, used_}; }

 protected:
  // Bits for the work to do; derived classes add their own from kOwn on.
  enum Work : unsigned {
    kRead = 1,
    kWrite = 2,
    kReadToEnd = 4,
    kTime = 8,
    kClose = 16,
    kMakeRoom = 32,  // never reaches DoNow()
    kOwn = 64
  };

  // `poller` must outlive the connection, and owns it from Begin() to End().
  Connection(Poller* poller, const Socket& socket, std::string peer);

  void Begin();
  // The descriptor may be reused after this call.
  void End() {
    ended_ = true;
    poller_->Remove(fd_, number_);
  }
  // Whether the connection must wait for the next second before it reads, because it has wasted too
  // much time.
  bool is_held() const { return held_ != 0; }
  // Reads again after other connections have had their turn.
  void Again() {
    if (!ended_) poller_->Again(fd_, number_);
  }

  // Does all `work`, and adds to use_. If it throws, the connection is closed.
  virtual void DoNow(unsigned work) = 0;
  // Closes the connection even if calls are in flight.
  virtual void Close() = 0;
  // Whether no complete call waits for its answer.
  virtual bool IsIdle() const = 0;
  bool had_call() const { return had_call_; }
  void Do(unsigned work);
  // Leaves `work` to another thread or a later turn. For callers on a thread that may already own
  // the connection.
  void DoSoon(unsigned work);
  // Calls read_once(size) until it returns false or other connections must get their turn; in the
  // second case reading continues after their turn. `size` is the most bytes to read: `most`, or
  // less after a read of many small items.
  template <typename ReadOnce>
  void ReadForATurn(size_t most, ReadOnce read_once) {
    constexpr int kItemsPerTurn = 128;
    constexpr int kManyItems = 64;
    constexpr size_t kShortRead = 2 << 10;
    for (int i = 0; i < kReadsPerTurn && use_.items < kItemsPerTurn; ++i) {
      const int before = use_.items;
      const bool goes_on = read_once(is_read_short_ ? kShortRead : most);
      if (use_.items > before) is_read_short_ = use_.items - before > kManyItems;
      if (!goes_on) return;
    }
    Again();
  }
  // Claims newly set bits of `work`; the caller handles them.
  unsigned Take(unsigned work) { return work_.fetch_and(~work) & work; }

  Use use_;  // what this turn has done so far

 private:
  void TakeTurn();
  void Try(unsigned work);
  bool IsWasteful() const;

  Poller* const poller_;
  const int fd_;
  const bool is_tls_;
  const std::string peer_;
  const std::shared_ptr<Host> host_;
  uint64_t number_ = 0;
  std::atomic<unsigned> work_{0};
  std::atomic<bool> taken_{false};  // whether a thread owns the connection
  std::atomic<bool> ended_{false};
  std::atomic<bool> had_call_{false};
  std::atomic<scheduling::Clock::time_point> used_{scheduling::Clock::now()};

  // Used only by the owning thread.
  bool called_ = false;  // a call was received since the last tick
  bool is_read_short_ = true;
  std::chrono::nanoseconds wasted_{};  // halved every second
  unsigned held_ = 0;                  // reads postponed to the next second
};

// Closes up to `most` connections to make room for others, in the order of last_use(). Spares
// connections with a call within the last two seconds, and those opened within the last second,
// whose first request may not have been read yet. Logs how many it closed, at most once per minute.
// Returns false if it spares all.
bool CloseIdlest(const std::vector<std::shared_ptr<Connection>>& connections, size_t most,
                 scheduling::Clock::time_point now = scheduling::Clock::now());

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_CONNECTION_H_
