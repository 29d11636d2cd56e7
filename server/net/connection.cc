#include "server/net/connection.h"

#include <sys/epoll.h>

#include <utility>

namespace colcast::net {

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
  work_.fetch_or(work);
  while (work_.load() != 0 && !taken_.exchange(true)) {
    DoNow(work_.exchange(0));
    taken_.store(false);
  }
}

void Connection::DoSoon(unsigned work) {
  work_.fetch_or(work);
  if (!taken_.load()) Again();
}

}  // namespace colcast::net
