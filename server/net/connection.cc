#include "server/net/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "server/base/figures.h"
#include "server/base/log.h"
#include "server/base/thread.h"

namespace colcast::net {
Connection::Connection(Poller* poller, const Socket& socket, std::string peer)
    : poller_(poller),
      fd_(socket.fd()),
      is_tls_(socket.is_tls()),
      peer_(std::move(peer)),
      host_(poller->hosts().Of(peer_)) {}

void Connection::Begin() {
  taken_ = true;  // until number_ is set, other threads may only post work
  number_ = poller_->Add(fd_, shared_from_this());
  taken_ = false;
  Do(kWrite);
}

void Connection::Happened(uint32_t events) {
  unsigned work = 0;
  if ((events & EPOLLOUT) != 0 || is_tls_) work |= kWrite;
  if ((events & EPOLLIN) != 0 || is_tls_) work |= kRead;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) work |= kReadToEnd;
  Do(work);
}

void Connection::Do(unsigned work) {
  constexpr int kMaxTurns = 4;
  constexpr unsigned kSocketTells = kRead | kWrite | kReadToEnd;
  work_.fetch_or(work);
  for (int turns = 0; work_.load() != 0; ++turns) {
    // A client that sends fast must not monopolize this thread.
    if (turns >= kMaxTurns && (work_.load() & ~kSocketTells) == 0) return Again();
    if (taken_.exchange(true)) return;
    TakeTurn();
    taken_.store(false);
  }
}

bool Connection::IsWasteful() const {
  // Some waste is normal: clients also send frames that belong to no call, such as
  // acknowledgements, window updates, and headers before a message.
  constexpr std::chrono::milliseconds kMaxWasted(5);
  // A host may be a proxy with clients of all kinds. If it has wasted too much, its connections
  // that pay for their turns are still served.
  constexpr std::chrono::milliseconds kMaxWastedByHost(10);
  constexpr std::chrono::microseconds kAlwaysForgiven(100);
  return wasted_ > kMaxWasted ||
         (wasted_ > kAlwaysForgiven && host_->wasted.InThisSecond() > kMaxWastedByHost);
}

void Connection::TakeTurn() {
  constexpr std::chrono::nanoseconds kPaidByCall(100'000);
  constexpr std::chrono::nanoseconds kPaidByByte(4);
  constexpr std::chrono::nanoseconds kCostOfItem(1'000);
  constexpr unsigned kReads = kRead | kReadToEnd;
  unsigned work = work_.exchange(0);
  if ((work & kTime) != 0) {
    wasted_ /= 2;
    work |= std::exchange(held_, 0);
    if (std::exchange(called_, false) || !IsIdle()) used_ = scheduling::Clock::now();
  }
  if ((work & kMakeRoom) != 0) {
    work &= ~kMakeRoom;
    if (IsIdle()) work |= kClose;
    if (work == 0) return;
  }
  if ((work & kReads) != 0 && IsWasteful()) {
    held_ |= work & kReads;
    work &= ~kReads;
    if (work == 0) return;
  }
  // Reading the clock costs time, so a turn is measured only if the host's last one was wasteful.
  const bool is_measured = host_->is_suspect.load(std::memory_order_relaxed);
  const auto begin = is_measured ? CpuTimeOfThisThread() : std::chrono::nanoseconds(0);
  use_ = {};
  Try(work);
  if (use_.calls > 0) {  // stores had_call_ only once, because other threads read it
    called_ = true;
    if (!had_call_.load(std::memory_order_relaxed)) had_call_ = true;
  }
  const auto paid = use_.calls * kPaidByCall + static_cast<int64_t>(use_.bytes) * kPaidByByte;
  const bool is_waste = use_.items * kCostOfItem > paid;
  if (is_waste && is_measured) {
    const auto waste = CpuTimeOfThisThread() - begin - paid;
    wasted_ += waste;
    host_->wasted.Add(waste);
  } else if (!is_waste && (is_measured || wasted_.count() > 0)) {
    wasted_ -= std::min<std::chrono::nanoseconds>(wasted_, paid);
    host_->wasted.Add(-paid);
    if (held_ != 0 && !IsWasteful()) work_.fetch_or(std::exchange(held_, 0));
  }
  if (use_.items > 0 && is_waste != is_measured) {
    host_->is_suspect.store(is_waste, std::memory_order_relaxed);
  }
}

void Connection::Try(unsigned work) {
  try {
    DoNow(work);
  } catch (const std::exception&) {  // out of memory
    Close();
    LogError("out of memory for a connection's input: the connection is closed");
    use_ = {};
  }
}

void Connection::DoSoon(unsigned work) {
  work_.fetch_or(work);
  if (!taken_.load()) Again();
}

void Connection::MakeRoom() {
  used_ = scheduling::Clock::now();
  Do(kMakeRoom);
}

bool CloseIdlest(const std::vector<std::shared_ptr<Connection>>& connections, size_t most,
                 scheduling::Clock::time_point now) {
  using scheduling::Clock;
  constexpr std::chrono::seconds kInUse(2);
  constexpr std::chrono::seconds kFirstCall(1);
  constexpr std::chrono::minutes kLogEvery(1);
  static std::atomic<int64_t> closed{0};
  static std::atomic<Clock::time_point> logged{Clock::time_point::min()};
  std::vector<std::pair<std::pair<bool, Clock::time_point>, Connection*>> idle;
  for (const auto& connection : connections) {
    const auto use = connection->last_use();
    if (now - use.second >= (use.first ? kInUse : kFirstCall))
      idle.emplace_back(use, connection.get());
  }
  most = std::min(most, idle.size());
  std::partial_sort(idle.begin(), idle.begin() + static_cast<ptrdiff_t>(most), idle.end());
  for (size_t i = 0; i < most; ++i) idle[i].second->MakeRoom();
  closed += static_cast<int64_t>(most);
  figures.closed_for_room += static_cast<int64_t>(most);
  Clock::time_point last = logged;
  const bool is_due = last == Clock::time_point::min() || now - last >= kLogEvery;
  if (most > 0 && is_due && logged.compare_exchange_strong(last, now)) {
    LogWarning("connections or file descriptors run short: closed the " +
               std::to_string(closed.exchange(0)) +
               " connections longest without a call, to make room for others");
  }
  return most > 0;
}

}  // namespace colcast::net
