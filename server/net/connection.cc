#include "server/net/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <utility>

#include "server/base/log.h"

namespace colcast::net {
namespace {

// How long it has run.
std::chrono::nanoseconds TimeOfThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Connection::Connection(Poller* poller, const Socket& socket, std::string peer)
    : poller_(poller), fd_(socket.fd()), is_tls_(socket.is_tls()), peer_(std::move(peer)) {}

void Connection::Begin() {
  // Until it is taken here, no other thread does what the poller finds.
  taken_ = true;
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
    // A client that sends fast would have this thread for as long.
    if (turns >= kMaxTurns && (work_.load() & ~kSocketTells) == 0) return Again();
    if (taken_.exchange(true)) return;
    TakeTurn();
    taken_.store(false);
  }
}

void Connection::TakeTurn() {
  constexpr std::chrono::milliseconds kMaxWasted(5);
  // A client that makes calls also sends what leads to none: acknowledgements, windows, headers
  // that come before their message.
  constexpr std::chrono::microseconds kForgivenByUse(100);
  unsigned work = work_.exchange(0);
  if ((work & kTime) != 0) {
    wasted_ = {};
    work |= std::exchange(held_, 0);
  }
  if (wasted_ > kMaxWasted) {
    held_ |= work & (kRead | kReadToEnd);
    work &= ~held_;
    if (work == 0) return;
  }
  // To ask takes time, too: not of one that is always useful.
  const auto begin = was_waste_ ? TimeOfThisThread() : std::chrono::nanoseconds(0);
  const Sent sent = Try(work);
  if (sent == Sent::kWaste && was_waste_) wasted_ += TimeOfThisThread() - begin;
  if (sent != Sent::kNothing) was_waste_ = sent == Sent::kWaste;
  if (sent != Sent::kUse) return;
  wasted_ -= std::min<std::chrono::nanoseconds>(wasted_, kForgivenByUse);
  if (wasted_ <= kMaxWasted) work_.fetch_or(std::exchange(held_, 0));
}

Connection::Sent Connection::Try(unsigned work) {
  try {
    return DoNow(work);
  } catch (const std::exception&) {  // only running out of memory comes here
    Close();
    LogError("no memory left for what a connection has sent: it is closed");
    return Sent::kNothing;
  }
}

void Connection::DoSoon(unsigned work) {
  work_.fetch_or(work);
  if (!taken_.load()) Again();
}

}  // namespace colcast::net
