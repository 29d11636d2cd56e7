// gRPC's completion queues and the threads that wait on them, through which every service answers.
//
// gRPC lets one thread of a process wait for the sockets at a time (its ev_epoll1_linux.cc). Where
// more would wait, each event wakes another one to take over, which costs a request more than all
// else that gRPC does for it. So one thread waits as long as it keeps up, and no service has
// threads of gRPC's own (the synchronous and the callback API): they would take their turns. What
// keeps it busy would keep all connections waiting, so another thread looks after it, and waits in
// its place until it is free again.
#ifndef COLCAST_SERVER_RPC_EVENT_LOOP_H_
#define COLCAST_SERVER_RPC_EVENT_LOOP_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace colcast::rpc {

// What an operation on a queue is tagged with: happens once, on any thread, which it must not keep
// long. `ok` is gRPC's: false if the operation came to nothing.
class Event {
 public:
  virtual void Happen(bool ok) = 0;
  void* tag() { return this; }

 protected:
  ~Event() = default;
};

// The event that calls a member function of its owner.
template <typename Owner>
class MemberEvent final : public Event {
 public:
  MemberEvent(Owner* owner, void (Owner::*member)(bool ok)) : owner_(owner), member_(member) {}
  void Happen(bool ok) override { (owner_->*member_)(ok); }

 private:
  Owner* const owner_;
  void (Owner::*const member_)(bool ok);
};

// Shared by the server and the calls that are just being finished: a thread may return from the end
// of the last call after the server is gone.
class EventLoop {
 public:
  explicit EventLoop(grpc::ServerBuilder* builder) : arrivals_(builder->AddCompletionQueue()) {}

  // The loop's threads wait for what happens here: calls that arrive, messages of streams.
  grpc::ServerCompletionQueue* arrivals() { return arrivals_.get(); }

  // Nobody waits for what happens here, the ends of calls, so no thread wakes for one: whoever
  // finishes a call says how many events it has and then handles as many, be they its own or
  // others'; the loop's threads handle what is left when there is nothing else. To look in vain
  // would cost a look at the sockets.
  grpc::CompletionQueue* endings() { return &endings_; }
  void ExpectEndings(int events) { due_.fetch_add(events, std::memory_order_relaxed); }
  void HandleEndings();

  // Once, when the server has been built.
  void Start(int num_threads);

  // Ends the threads, when all events have happened. Once, when the server has shut down.
  void Shutdown();

 private:
  // A thread that waits for events, as others see it.
  struct Poller {
    std::thread thread;
    std::atomic<int64_t> turns{0};  // how often it had something to do, or had waited long enough
  };

  // What a poller had done at some moment.
  struct Progress {
    int64_t turns = 0;
    std::chrono::nanoseconds cpu_time{0};
  };

  void Run(Poller* poller);
  void StandBy();
  // False once the loop ends.
  bool SleepUntilNextLook();
  std::vector<Progress> Look() const;
  bool SomeoneTookATurn(const std::vector<Progress>& since) const;
  // False once the queue has shut down.
  bool HandleArrival(std::chrono::milliseconds longest_wait);
  bool HandleEnding();

  const std::unique_ptr<grpc::ServerCompletionQueue> arrivals_;
  grpc::CompletionQueue endings_;
  std::atomic<int> due_{0};  // events expected less those that were handled
  std::deque<Poller> pollers_;

  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::thread standby_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_EVENT_LOOP_H_
