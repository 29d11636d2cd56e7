#include "server/net/poller.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

namespace colcast::net {
namespace {

using scheduling::Clock;

class Looked final : public Pollable {
 public:
  void Happened(uint32_t) override { ++happened; }
  void PostTimer() override { ++looks; }
  void CloseAtOnce() override {}
  std::atomic<int> happened{0}, looks{0};
};

class StandbyTest : public ::testing::Test {
 protected:
  StandbyTest() { poller_.Add(event_, looked_); }
  ~StandbyTest() override { close(event_); }

  const int event_ = eventfd(0, EFD_NONBLOCK);
  const std::shared_ptr<Looked> looked_ = std::make_shared<Looked>();
  Poller poller_;
  Standby standby_{&poller_};
};

TEST_F(StandbyTest, PollsIfNoOtherThreadDoes) {
  eventfd_write(event_, 1);
  while (looked_->happened == 0) std::this_thread::yield();
}

// Without LookNow(), the check happens once a second.
TEST_F(StandbyTest, LookNowChecksTimeoutsImmediately) {
  constexpr int kTimes = 20;
  const Clock::time_point begin = Clock::now();
  for (int i = 1; i <= kTimes; ++i) {
    standby_.LookNow();
    while (looked_->looks < i) std::this_thread::yield();
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(kTimes / 2));
}

}  // namespace
}  // namespace colcast::net
