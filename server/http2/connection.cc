#include "server/http2/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/http2/grpc.h"

namespace colcast::http2 {
namespace {

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

std::unique_ptr<nghttp2_option, OptionDeleter> SessionOptions(const ConnectionOptions& options) {
  nghttp2_option* made = nullptr;
  if (nghttp2_option_new(&made) != 0) return nullptr;
  nghttp2_option_set_no_auto_window_update(made, 1);
  // nghttp2 skips unknown frame types silently; register them so that they count as frames.
  for (int type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; ++type) {
    nghttp2_option_set_user_recv_extension_type(made, static_cast<uint8_t>(type));
  }
  const auto resets = static_cast<uint64_t>(options.max_resets_per_second);
  nghttp2_option_set_stream_reset_rate_limit(made, resets, resets);
  return std::unique_ptr<nghttp2_option, OptionDeleter>(made);
}

}  // namespace

void Connection::Start(std::unique_ptr<net::Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared) {
  if (socket->got_plain_http()) return;
  const auto connection =
      std::make_shared<Connection>(std::move(socket), std::move(peer), std::move(shared));
  if (!connection->BeginSession()) return;
  connection->Begin();
  const auto phase = connection->shared_->connections.phase();
  if (phase == net::OpenConnections::Phase::kDraining) connection->Drain();
  if (phase == net::OpenConnections::Phase::kClosing) connection->CloseAtOnce();
}

Connection::Connection(std::unique_ptr<net::Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared)
    : net::Connection(shared->poller, *socket, std::move(peer)),
      shared_(std::move(shared)),
      transport_(std::move(socket)) {}

bool Connection::BeginSession() {
  const ConnectionOptions& options = shared_->options;
  const auto session_options = SessionOptions(options);
  if (session_options == nullptr ||
      nghttp2_session_server_new2(&transport_.session(), AllCallbacks(), this,
                                  session_options.get()) != 0) {
    return false;
  }
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options.max_header_bytes},
  }};
  nghttp2_submit_settings(session(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session(), NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  return true;
}

void Connection::Answer(Call* call, std::optional<Message> message, Status status) {
  const std::shared_ptr<Connection> self = Self();  // the call may hold the last reference
  {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    call->next_ = std::move(message);
    call->last_ = std::move(status);
    answers_.push_back(call);
  }
  Do(kAnswers);
}

void Connection::AnswerSoon(Call* call, std::optional<Message> message,
                            std::optional<Status> status) {
  {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    if (call->last_) return;
    if (message) call->next_ = std::move(message);
    if (status) call->last_ = std::move(status);
    call->holders_.fetch_add(1, std::memory_order_relaxed);
    answers_.push_back(call);
  }
  DoSoon(kAnswers);
}

void Connection::DoNow(unsigned work) {
  if (phase_ == Phase::kFailed && (work & (kTime | kReadToEnd | kDrain)) != 0) Close();
  if (phase_ != Phase::kClosed) {
    if ((work & kReadToEnd) != 0) to_end_ = true;
    if ((work & (kRead | kReadToEnd)) != 0) Read();
    if ((work & kTime) != 0) OnTimer();
    if ((work & kDrain) != 0) {
      BeginDrain();
      EndStreams();
    }
    if ((work & kDrainAtOnce) != 0) {
      CutStreams();
      EndDrain();
    }
    if ((work & kClose) != 0) {
      EndDrain();  // tells the client which calls it may send elsewhere
      Write();
      Close();
    }
  }
  work |= Take(kAnswers);  // includes answers to calls that arrived in this turn
  if ((work & kAnswers) != 0) SendAnswers();
  if (phase_ != Phase::kClosed) Write();
  NotifySent();
}

void Connection::Read() {
  ReadForATurn(Transport::kBlockBytes, [this](size_t most) {
    if (!is_open()) return false;
    const Transport::Result result = transport_.Read(most);
    if (result == Transport::Result::kNothing) return false;
    if (result == Transport::Result::kClosed) return Close(), false;
    ++use_.items;
    heard_ = true;
    if (result == Transport::Result::kBroken) phase_ = Phase::kFailed;
    return result != Transport::Result::kAll || to_end_;
  });
}

void Connection::Write() {
  const Transport::Result result = transport_.Write();
  if (result == Transport::Result::kNothing) return;
  if (result == Transport::Result::kClosed || (transport_.is_over() && is_open())) Close();
}

// Streams and incomplete requests may last for as long as the client likes.
bool Connection::IsIdle() const {
  return std::none_of(calls_.begin(), calls_.end(),
                      [](const Call* call) { return !call->handler_ && call->has_ended(); });
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  End();
  transport_.socket().Close();
  sent_.clear();
  while (!calls_.empty()) CallClosed(calls_.back());
}

}  // namespace colcast::http2
