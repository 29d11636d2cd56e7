#include "server/http1/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <functional>

#include "server/net/socket.h"

namespace colcast::http {
namespace {

// Below this size, the headers cost more than compression saves.
constexpr size_t kLeastToCompress = 8 << 10;
// How much of the body is sent in the same write as the headers.
constexpr size_t kMostBehindHeaders = 64 << 10;
constexpr std::chrono::seconds kLinger{2};

std::string HeadersOf(const Response& response, bool keep_alive, bool http10) {
  std::string text = "HTTP/1.1 " + std::to_string(response.code) + ' ';
  text += ToStd(beast::http::obsolete_reason(beast::http::int_to_status(response.code)));
  text += "\r\nDate: " + HttpTime() + "\r\nContent-Type: " + response.content_type;
  for (const auto& [name, value] : response.headers) text += "\r\n" + name + ": " + value;
  if (!keep_alive) text += "\r\nConnection: close";
  if (keep_alive && http10) text += "\r\nConnection: keep-alive";
  return text + "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n\r\n";
}

}  // namespace

void Connection::Start(std::unique_ptr<net::Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared) {
  // A client that sent plain HTTP to a TLS port is answered now, because it may send nothing more.
  const bool is_told = socket->got_plain_http();
  const auto connection =
      std::make_shared<Connection>(std::move(socket), std::move(peer), std::move(shared));
  connection->Begin();
  if (is_told) connection->Do(kRead);
  const auto phase = connection->shared_->connections.phase();
  if (phase == net::OpenConnections::Phase::kDraining) connection->Stop();
  if (phase == net::OpenConnections::Phase::kClosing) connection->CloseAtOnce();
}

Connection::Connection(std::unique_ptr<net::Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared)
    : net::Connection(shared->poller, *socket, std::move(peer)),
      shared_(std::move(shared)),
      socket_(std::move(socket)),
      client_(std::hash<std::string>()("http:" + net::HostOf(this->peer()))) {
  BeginRequest();
}

bool Connection::cancelled() const {
  pollfd poll_fd = {socket_->fd(), POLLRDHUP, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

Status Connection::CheckClientReads(Clock::time_point since) const {
  return poller().hosts().CheckUnread(*host(), since);
}

void Connection::Answer(Response response) {
  if (request_.any_origin) {
    response.headers.emplace_back("Access-Control-Allow-Origin", "*");
    response.headers.emplace_back("Access-Control-Allow-Methods", "POST, GET");
    response.headers.emplace_back("Access-Control-Allow-Headers", "Content-Type");
  }
  if (form_.gzip && response.body.size() >= kLeastToCompress) {
    response.body = response.gzipped.empty() ? Gzip(response.body) : std::move(response.gzipped);
    response.headers.emplace_back("Content-Encoding", "gzip");
  }
  answer_ = std::move(response);
  const Status status = CountAnswer(form_.without_body ? 0 : answer_.body.size());
  if (!status.ok()) answer_ = ErrorResponse(status);
  Do(kAnswer);
}

void Connection::DoNow(unsigned work) {
  if (phase_ != Phase::kClosed) {
    DoAll(work);
  } else if ((work & kAnswer) != 0) {
    unread_.Return();
  }
}

void Connection::DoAll(unsigned work) {
  if ((work & kReadToEnd) != 0) to_end_ = true;
  if ((work & (kRead | kReadToEnd)) != 0) readable_ = true;
  const bool is_between = phase_ == Phase::kIdle || phase_ == Phase::kPipelined;
  if (((work & kStop) != 0 && is_between) || (work & kClose) != 0) return Close();
  if ((work & kTime) != 0) OnTimer();
  if ((work & kAnswer) != 0) Write(std::move(answer_));
  if (phase_ == Phase::kPipelined) {
    phase_ = Phase::kIdle;
    Parse();
  }
  if (Flush() && !is_held()) Read();
}

// Closes the connection if its client sends or reads too slowly, to release memory that others
// need.
void Connection::OnTimer() {
  constexpr int64_t kLeastBytesPerSecond = 4 << 10;
  constexpr int kMaxTicksWithoutReading = 5;
  const HttpServer::Options& options = shared_->options;
  const Clock::time_point now = Clock::now();
  if (now >= deadline_) return Close();
  if (phase_ == Phase::kReadingBody) {
    const auto time = std::chrono::duration_cast<std::chrono::seconds>(now - began_);
    const auto received = static_cast<int64_t>(parser_->get().body().received());
    const bool is_slow = received < (time - options.body_grace).count() * kLeastBytesPerSecond;
    if (is_slow || (time > options.body_time_where_short && poller().hosts().bodies.is_short())) {
      Refuse(408, "the body arrives too slowly");
    }
  } else if (unread_.bytes() > 0 && phase_ == Phase::kWriting) {
    const bool reads_nothing = ++ticks_without_reading_ > kMaxTicksWithoutReading;
    if (reads_nothing && poller().hosts().unread.is_short()) Close();
  }
}

void Connection::Read() {
  ReadForATurn(kReadBytes, [this](size_t most) {
    const bool is_busy = phase_ == Phase::kAnswering || phase_ == Phase::kWriting ||
                         phase_ == Phase::kPipelined || phase_ == Phase::kClosed;
    if (!readable_ || is_busy) return false;
    ReadOnce(most);
    return Flush();
  });
}

void Connection::ReadOnce(size_t most) {
  std::array<uint8_t, kReadBytes> bytes;
  size_t size = std::min(most, kReadBytes - buffer_.size());
  const size_t room = size;
  const net::Socket::Result result = socket_->Read(bytes.data(), &size);
  if (socket_->got_plain_http() && phase_ == Phase::kIdle) {
    // Answers without encryption, and does not parse the request.
    ++use_.items;
    return Refuse(400, "this port speaks TLS, but the request is plain HTTP: use https");
  }
  if (result == net::Socket::Result::kClosed) return Close();
  const bool got_some = result == net::Socket::Result::kDone;
  if (got_some) ++use_.items;
  readable_ = got_some && (size == room || socket_->is_tls() || to_end_);
  if (!got_some || phase_ == Phase::kClosing) return;
  boost::asio::buffer_copy(buffer_.prepare(size), boost::asio::buffer(bytes.data(), size));
  buffer_.commit(size);
  Parse();
}

std::string_view Connection::Unsent() const {
  if (sent_ < output_.size()) return std::string_view(output_).substr(sent_);
  return std::string_view(body_).substr(sent_ - output_.size() + body_in_output_);
}

// Sends pending output. Returns false if the connection must wait, or is closed.
bool Connection::Flush() {
  while (phase_ != Phase::kClosed) {
    const std::string_view unsent = Unsent();
    if (unsent.empty()) break;
    size_t size = unsent.size();
    const auto result = socket_->Write(reinterpret_cast<const uint8_t*>(unsent.data()), &size);
    if (result == net::Socket::Result::kAgain) return false;
    if (result == net::Socket::Result::kClosed) return Close(), false;
    sent_ += size;
    use_.bytes += size;
    ticks_without_reading_ = 0;
  }
  if (phase_ == Phase::kWriting) Written();
  return phase_ != Phase::kClosed;
}

void Connection::Write(Response response) {
  phase_ = Phase::kWriting;
  SetDeadline(shared_->options.transfer_timeout);
  form_.keep_alive = form_.keep_alive && !shared_->draining && !shared_->is_stopped();
  Send(HeadersOf(response, form_.keep_alive, form_.http10));
  if (!form_.without_body) body_ = std::move(response.body);
  body_in_output_ = std::min(body_.size(), kMostBehindHeaders);
  Send(std::string_view(body_).substr(0, body_in_output_));
  request_.body.Clear();
  request_.memory.reset();
}

void Connection::Written() {
  unread_.Return();
  output_ = std::string();
  body_ = std::string();
  sent_ = body_in_output_ = 0;
  if (!form_.keep_alive) return LingerAndClose();
  if (shared_->is_stopped()) return Close();
  BeginRequest();
  if (buffer_.size() == 0) return buffer_.shrink_to_fit();
  phase_ = Phase::kPipelined;  // parsed after other connections have had their turn
  Again();
}

// Keeps reading for a moment: an immediate close would reset the connection if the client is still
// sending, and the client could lose the last answer.
void Connection::LingerAndClose() {
  phase_ = Phase::kClosing;
  buffer_.clear();  // makes room to read
  SetDeadline(kLinger);
  socket_->EndWriting();
  readable_ = true;
}

// Shuts the socket down, but keeps its descriptor: a handler may still ask the socket whether the
// client has hung up.
void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  if (phase_ != Phase::kAnswering)
    unread_.Return();  // otherwise returned after the handler has answered
  phase_ = Phase::kClosed;
  End();
  socket_->Close();
}

}  // namespace colcast::http
