// A job for tests.
#ifndef COLCAST_SERVER_SCHEDULING_TESTING_H_
#define COLCAST_SERVER_SCHEDULING_TESTING_H_

#include <future>
#include <utility>
#include <vector>

#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {

// Keeps a thread of the pool busy until released.
class BlockingJob final : public Job {
 public:
  BlockingJob(std::promise<void>* started, std::shared_future<void> released)
      : started_(started), released_(std::move(released)) {}
  Clock::time_point deadline() const override { return Clock::time_point::max(); }
  bool cancelled() const override { return false; }
  void Run(Clock::duration, std::vector<Taken>*) override {
    started_->set_value();
    released_.wait();
    delete this;
  }
  void Drop(DropReason) override { delete this; }

 private:
  std::promise<void>* const started_;
  const std::shared_future<void> released_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_TESTING_H_
