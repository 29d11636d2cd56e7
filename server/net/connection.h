// A client's connection, independent of the protocol.
//
// One thread at a time owns it: the one that found work to do. A thread that brings more work
// meanwhile, such as an answer, leaves it to the owner without waiting.
#ifndef COLCAST_SERVER_NET_CONNECTION_H_
#define COLCAST_SERVER_NET_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/net/hosts.h"
#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::net {

// After this many reads, other connections get their turn.
inline constexpr int kReadsPerTurn = 4;

// The result of a turn, by which abuse is measured. Calls and bytes pay for a thread's time, items
// cost it. A turn that costs more than it pays is waste, and a host may waste only so much per
// second.
struct Use {
  int calls = 0;     // complete calls received
  size_t bytes = 0;  // of received messages and sent answers
  int items = 0;     // read: frames, headers, chunks, TLS records
};

class Connection : public Pollable, public std::enable_shared_from_this<Connection> {
 public:
  const std::string& peer() const { return peer_; }
  uint64_t number() const { return number_; }
  const std::shared_ptr<Host>& host() const { return host_; }
  Poller& poller() const { return *poller_; }

  // These may be called on any thread.
  void Happened(uint32_t events) final;
  void LookAtTheTime() final { Do(kTime); }
  void CloseAtOnce() final { Do(kClose); }

 protected:
  // Bits for the work to do; derived classes add their own from kOwn on.
  enum Work : unsigned { kRead = 1, kWrite = 2, kReadToEnd = 4, kTime = 8, kClose = 16, kOwn = 32 };

  // `poller` must outlive the connection, which it owns from Begin() to End().
  Connection(Poller* poller, const Socket& socket, std::string peer);

  // Until Settle(), the connection counts as a newcomer, which is closed first when descriptors run
  // short.
  void Begin();
  void Settle() {
    if (!std::exchange(is_settled_, true)) poller_->Settle(number_);
  }
  // The descriptor may be reused after this call.
  void End() {
    ended_ = true;
    poller_->Remove(fd_, number_);
  }
  // Whether the connection must not read before the next second, because it wastes time.
  bool is_held() const { return held_ != 0; }
  // Reads again after other connections have had their turn.
  void Again() {
    if (!ended_) poller_->Again(fd_, number_);
  }

  // Does all `work`. If it throws, the connection is closed.
  virtual Use DoNow(unsigned work) = 0;
  // Closes the connection, whatever is in flight.
  virtual void Close() = 0;
  void Do(unsigned work);
  // Does the work on another thread or later, because this thread may own the connection already.
  void DoSoon(unsigned work);
  // Claims newly set bits of `work`; the caller handles them.
  unsigned Take(unsigned work) { return work_.fetch_and(~work) & work; }

 private:
  void TakeTurn();
  Use Try(unsigned work);
  bool IsWasteful() const;

  Poller* const poller_;
  const int fd_;
  const bool is_tls_;
  const std::string peer_;
  const std::shared_ptr<Host> host_;
  uint64_t number_ = 0;
  std::atomic<unsigned> work_{0};
  std::atomic<bool> taken_{false};  // by a thread
  std::atomic<bool> ended_{false};

  // Used only by the owning thread.
  bool is_settled_ = false;
  std::chrono::nanoseconds wasted_{};  // halved every second
  unsigned held_ = 0;                  // reads postponed to the next second
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_CONNECTION_H_
