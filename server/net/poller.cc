#include "server/net/poller.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

namespace colcast::net {
namespace {

using scheduling::Clock;

constexpr uint32_t kEdges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

void Control(int epoll, int operation, int fd, uint64_t number, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  epoll_ctl(epoll, operation, fd, &event);
}

// How often to check whether any thread is waiting for the sockets.
constexpr std::chrono::milliseconds kLookEvery(20);
constexpr std::chrono::seconds kLookAtTimeEvery(1);

timespec TimeUntil(Clock::time_point until) {
  const auto left =
      std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(until - Clock::now()));
  constexpr int64_t kSecond = 1'000'000'000;
  return {static_cast<time_t>(left.count() / kSecond), static_cast<long>(left.count() % kSecond)};
}

}  // namespace

Poller::Poller(size_t max_unread_bytes_per_host, size_t max_body_bytes)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      hosts_(max_unread_bytes_per_host, max_body_bytes) {
  Control(epoll_, EPOLL_CTL_ADD, wake_, kWake, EPOLLIN | EPOLLET);
}

Poller::~Poller() {
  close(wake_);
  close(epoll_);
}

uint64_t Poller::Add(int fd, std::shared_ptr<Pollable> pollable) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t number = ++last_number_;
  pollables_.emplace(number, std::move(pollable));
  Control(epoll_, EPOLL_CTL_ADD, fd, number, kEdges);
  return number;
}

void Poller::Again(int fd, uint64_t number) { Control(epoll_, EPOLL_CTL_MOD, fd, number, kEdges); }

void Poller::Remove(int fd, uint64_t number) {
  Control(epoll_, EPOLL_CTL_DEL, fd, number, 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  pollables_.erase(number);
}

bool Poller::Poll(Clock::time_point until) {
  const bool waits = until != Clock::time_point::min();
  // A waiting thread handles a single event, because other threads may be idle.
  std::array<epoll_event, 16> events;
  const int most = waits ? 1 : static_cast<int>(events.size());
  int count = 0;
  if (waits) waiting_.fetch_add(1, std::memory_order_relaxed);
  if (!waits) {
    count = epoll_wait(epoll_, events.data(), most, 0);
  } else if (until == Clock::time_point::max()) {
    count = epoll_wait(epoll_, events.data(), most, -1);
  } else {
    const timespec time = TimeUntil(until);
    count = epoll_pwait2(epoll_, events.data(), most, &time, nullptr);
    if (count < 0 && errno == ENOSYS) {  // before Linux 5.11, and in emulators
      constexpr int64_t kMillisecond = 1'000'000;
      const int64_t part = (time.tv_nsec + kMillisecond - 1) / kMillisecond;
      const int64_t whole = std::min<int64_t>(time.tv_sec, 1'000'000) * 1000;
      count = epoll_wait(epoll_, events.data(), most, static_cast<int>(whole + part));
    }
  }
  if (waits) waiting_.fetch_sub(1, std::memory_order_relaxed);
  turns_.fetch_add(1, std::memory_order_relaxed);
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kWake) {
      woken = true;
    } else if (const auto pollable = Find(events[i].data.u64)) {
      pollable->Happened(events[i].events);
    }
  }
  return woken;
}

void Poller::Wake() { eventfd_write(wake_, 1); }

std::shared_ptr<Pollable> Poller::Find(uint64_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto place = pollables_.find(number);
  return place == pollables_.end() ? nullptr : place->second;
}

std::vector<std::shared_ptr<Pollable>> Poller::All() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Pollable>> all;
  for (const auto& [number, pollable] : pollables_) all.push_back(pollable);
  return all;
}

Standby::Standby(Poller* poller) : poller_(*poller), thread_("the sockets", [this] { Run(); }) {}

void Standby::Run() {
  pthread_setname_np(pthread_self(), "sockets");
  Clock::time_point looked = Clock::now();
  int64_t turns = poller_.turns();
  while (!ending_.WaitFor(kLookEvery)) {
    // Normally the waiting workers poll. If none is waiting and none has polled since the last
    // check, all are busy, so this thread polls instead.
    bool woken = false;
    while (!woken && poller_.waiting() == 0 && poller_.turns() == turns && !look_now_ &&
           Clock::now() - looked < kLookAtTimeEvery) {
      woken = poller_.Poll(Clock::now() + kLookEvery);
      ++turns;
    }
    if (woken) poller_.Wake();  // the wake-up was meant for a worker
    turns = poller_.turns();
    if (look_now_.exchange(false) || Clock::now() - looked >= kLookAtTimeEvery) {
      looked = Clock::now();
      for (const auto& each : poller_.All()) each->PostTimer();
    }
  }
}

}  // namespace colcast::net
