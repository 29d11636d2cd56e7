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
  void End() { poller_->Remove(fd_, number_); }
  // Has it read once more, when others had their turn.
  void Again() { poller_->Again(fd_, number_); }

  // Once for all that is to be done. Where it throws, the connection is closed. False if the client
  // sent what leads to nothing: no request, nor a part of one that is worth its time. Such turns
  // may take so much of a thread per second; then nothing is read for the rest of it.
  virtual bool DoNow(unsigned work) = 0;
  // Whatever is in flight.
  virtual void Close() = 0;
  void Do(unsigned work);
  // Not on this thread, which may be in the midst of it.
  void DoSoon(unsigned work);
  // Of `work`, what has come since; it is done here.
  unsigned Take(unsigned work) { return work_.fetch_and(~work) & work; }

 private:
  void TakeTurn();
  bool Try(unsigned work);

  Poller* const poller_;
  const int fd_;
  const bool is_tls_;
  const std::string peer_;
  uint64_t number_ = 0;
  std::atomic<unsigned> work_{0};
  std::atomic<bool> taken_{false};  // by a thread

  // Of the thread that has the connection.
  bool was_useful_ = true;             // the last turn
  std::chrono::nanoseconds wasted_{};  // of a thread's time, in this second
  unsigned held_ = 0;                  // until the time is looked at
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_CONNECTION_H_
