#include "server/http2/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/http2/grpc_headers.h"
#include "server/net/peer.h"

namespace colcast::http2 {
namespace {

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

std::unique_ptr<nghttp2_option, OptionDeleter> SessionOptions(const ConnectionOptions& options) {
  nghttp2_option* made = nullptr;
  if (nghttp2_option_new(&made) != 0) return nullptr;
  nghttp2_option_set_no_auto_window_update(made, 1);
  // Else frames of unknown kinds are passed over without a callback that could count them.
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
  const auto connection =
      std::make_shared<Connection>(std::move(socket), std::move(peer), std::move(shared));
  // Counted by now: the server's end either waits for it or is seen here.
  if (connection->shared_->ended || !connection->BeginSession()) return;
  connection->Begin();
  if (connection->shared_->ended) connection->Drain();
}

Connection::Connection(std::unique_ptr<net::Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared)
    : net::Connection(shared->poller, *socket, std::move(peer)),
      host_(net::HostOf(this->peer())),
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
  const std::shared_ptr<Connection> self = Self();  // the call may be the last to hold it
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

Connection::Sent Connection::DoNow(unsigned work) {
  reads_ = false;
  is_useful_ = (work & kAnswers) != 0;
  DoAll(work);
  if (is_useful_) return Sent::kUse;
  return reads_ ? Sent::kWaste : Sent::kNothing;
}

void Connection::DoAll(unsigned work) {
  // At once, it would come again at once.
  if (must_close_ && (work & (kTime | kReadToEnd | kDrain)) != 0) Close();
  if (!closed_) {
    if ((work & kReadToEnd) != 0) to_end_ = true;
    if ((work & (kRead | kReadToEnd)) != 0) Read();
    if ((work & kTime) != 0) SeeToTheTime();
    if ((work & kDrain) != 0) {
      BeginDrain();
      EndStreams();
    }
    if ((work & kDrainAtOnce) != 0) {
      CutStreams();
      EndDrain();
    }
    if ((work & kClose) != 0) Close();
  }
  work |= Take(kAnswers);  // those of calls that came
  if ((work & kAnswers) != 0) SendAnswers();
  if (!closed_) Write();
  TellWhatWasSent();
}

// Frames cost the same however small they are: where many came in one read, the next one is short.
void Connection::Read() {
  constexpr int kFramesPerTurn = 128;
  constexpr int kManyFrames = 64;
  constexpr size_t kShortRead = 2 << 10;
  if (must_close_) return;
  int frames = 0;
  for (int i = 0; i < net::kReadsPerTurn && frames < kFramesPerTurn; ++i) {
    frames_ = 0;
    const Transport::Result result =
        transport_.Read(reads_little_ ? kShortRead : Transport::kBlockBytes);
    if (result == Transport::Result::kNothing) return;
    if (result == Transport::Result::kClosed) return Close();
    heard_ = reads_ = true;
    is_new_ = false;
    reads_little_ = frames_ > kManyFrames;
    frames += frames_;
    must_close_ = must_close_ || result == Transport::Result::kBroken;
    if (must_close_ || (result == Transport::Result::kAll && !to_end_)) return;
  }
  Again();
}

void Connection::Write() {
  const Transport::Result result = transport_.Write();
  if (result == Transport::Result::kNothing) return;
  if (result == Transport::Result::kClosed || (transport_.is_over() && !must_close_)) Close();
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  End();
  transport_.socket().Close();
  sent_.clear();
  while (!calls_.empty()) CallClosed(calls_.back());
}

}  // namespace colcast::http2
