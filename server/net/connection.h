// A client's connection, whatever it speaks.
//
// One thread at a time owns it: the one that found something to do. A thread that brings more work
// meanwhile, an answer for example, leaves it to the owner and does not wait.
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

// Then other connections get their turn.
inline constexpr int kReadsPerTurn = 4;

// What a turn came to, the measure of abuse. Calls and bytes pay for a thread's time, items cost
// it; a turn that costs more than it pays is waste, and a host may waste only so much per second.
struct Use {
  int calls = 0;     // that came whole
  size_t bytes = 0;  // of their messages and answers
  int items = 0;     // read: frames, headers, chunks, records
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
  // What there is to do; a class adds its own from kOwn on.
  enum Work : unsigned { kRead = 1, kWrite = 2, kReadToEnd = 4, kTime = 8, kClose = 16, kOwn = 32 };

  // `poller` outlives the connection, and holds it from Begin() to End().
  Connection(Poller* poller, const Socket& socket, std::string peer);

  // The connection is a newcomer, the first to go where room runs short, until Settle().
  void Begin();
  void Settle() {
    if (!std::exchange(is_settled_, true)) poller_->Settle(number_);
  }
  // The descriptor may be reused afterwards.
  void End() {
    ended_ = true;
    poller_->Remove(fd_, number_);
  }
  // Reads again after other connections had their turn.
  void Again() {
    if (!ended_) poller_->Again(fd_, number_);
  }

  // Does all `work`. If it throws, the connection is closed.
  virtual Use DoNow(unsigned work) = 0;
  // Whatever is in flight.
  virtual void Close() = 0;
  void Do(unsigned work);
  // On another thread or later: this one may own the connection already.
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
  std::chrono::nanoseconds wasted_{};  // in this second
  unsigned held_ = 0;                  // reads put off until the next second
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_CONNECTION_H_
