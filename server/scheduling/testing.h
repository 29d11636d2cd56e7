// Jobs for tests.
#ifndef COLCAST_SERVER_SCHEDULING_TESTING_H_
#define COLCAST_SERVER_SCHEDULING_TESTING_H_

#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {

// Calls a function and deletes itself, even if the function throws.
class CallingJob : public Job {
 public:
  explicit CallingJob(std::function<void()> call) : call_(std::move(call)) {}
  Clock::time_point deadline() const override { return Clock::time_point::max(); }
  bool cancelled() const override { return false; }
  void Run(Clock::duration, std::vector<Taken>*) override {
    const std::unique_ptr<CallingJob> self(this);
    call_();
  }
  void Drop(DropReason) override { delete this; }

 private:
  const std::function<void()> call_;
};

// Keeps a thread of the pool busy until released.
class BlockingJob final : public CallingJob {
 public:
  BlockingJob(std::promise<void>* started, const std::shared_future<void>& released)
      : CallingJob([=] {
          started->set_value();
          released.wait();
        }) {}
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_TESTING_H_
