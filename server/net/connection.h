// A client's connection, whatever it speaks.
//
// One thread at a time has it, whichever finds something to do. Another one that brings more to do
// meanwhile, an answer say, leaves that to it and does not wait.
#ifndef COLCAST_SERVER_NET_CONNECTION_H_
#define COLCAST_SERVER_NET_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::net {

// Of one connection; then others get their turn.
inline constexpr int kReadsPerTurn = 4;

class Connection : public Pollable, public std::enable_shared_from_this<Connection> {
 public:
  const std::string& peer() const { return peer_; }
  uint64_t number() const { return number_; }

  // All that follow may be called on any thread.
  void Happened(uint32_t events) final;
  void LookAtTheTime() final { Do(kTime); }
  void CloseAtOnce() { Do(kClose); }

 protected:
  // What there is to do. A connection has more of its own, from kOwn on.
  enum Work : unsigned { kRead = 1, kWrite = 2, kReadToEnd = 4, kTime = 8, kClose = 16, kOwn = 32 };

  // `poller` outlives the connection, which it holds from Begin() to End().
  Connection(Poller* poller, const Socket& socket, std::string peer);

  // The first that is done is kWrite.
  void Begin();
  // The socket may be another connection's from then on.
  void End() {
    ended_ = true;
    poller_->Remove(fd_, number_);
  }
  // Has it read once more, when others had their turn.
  void Again() {
    if (!ended_) poller_->Again(fd_, number_);
  }

  // What the client sent in a turn: a request, a good part of one or what has been answered
  // meanwhile; or what leads to nothing; or nothing. Turns of kWaste may take so much of a thread
  // per second; then nothing is read for the rest of it.
  enum class Sent { kUse, kWaste, kNothing };

  // Once for all that is to be done. Where it throws, the connection is closed.
  virtual Sent DoNow(unsigned work) = 0;
  // Whatever is in flight.
  virtual void Close() = 0;
  void Do(unsigned work);
  // Not on this thread, which may be in the midst of it.
  void DoSoon(unsigned work);
  // Of `work`, what has come since; it is done here.
  unsigned Take(unsigned work) { return work_.fetch_and(~work) & work; }

 private:
  void TakeTurn();
  Sent Try(unsigned work);

  Poller* const poller_;
  const int fd_;
  const bool is_tls_;
  const std::string peer_;
  uint64_t number_ = 0;
  std::atomic<unsigned> work_{0};
  std::atomic<bool> taken_{false};  // by a thread
  std::atomic<bool> ended_{false};

  // Of the thread that has the connection.
  bool was_waste_ = false;             // the last turn in which something came
  std::chrono::nanoseconds wasted_{};  // of a thread's time, in this second
  unsigned held_ = 0;                  // until the time is looked at
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_CONNECTION_H_
