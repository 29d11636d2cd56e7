#include "server/http2/connection.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// Streams and incomplete requests count as idle: they may last as long as the client likes.
bool Connection::IsIdle() const {
  return std::none_of(calls_.begin(), calls_.end(),
                      [](const Call* call) { return !call->stream_ && call->has_ended_; });
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  End();
  transport_.socket().Close();
  while (!calls_.empty()) CallClosed(calls_.back());
}

namespace {

// Shortens the message: gRPC clients refuse headers over 8 KiB, and then see neither code nor
// message. Percent-encoding may make the message three times as long.
std::string MessageHeader(const std::string& message) {
  constexpr size_t kMaxBytes = 2000;
  const bool is_long = message.size() > kMaxBytes;
  return PercentEncode(is_long ? message.substr(0, kMaxBytes) + "..." : message);
}

}  // namespace

void Connection::SendAnswers() {
  {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    answering_.swap(answers_);
  }
  // Releases the calls even on an exception; otherwise they would keep the connection alive.
  struct Released {
    std::vector<Call*>& calls;
    ~Released() {
      for (Call* const call : calls) call->Release();
      calls.clear();
    }
  };
  const Released released{answering_};
  for (Call* const call : answering_) {
    if (!call->cancelled()) SendAnswer(call);
  }
}

void Connection::SendAnswer(Call* call) {
  if (call->is_answered_) return;
  std::optional<Status> error;
  {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    call->is_answered_ = call->last_.has_value();
    if (call->last_ && !call->next_ && !call->has_headers_sent_) error = call->last_;
  }
  if (call->has_headers_sent_) {
    nghttp2_session_resume_data(session(), call->id_);
  } else if (error) {
    SendOnlyTrailers(call, *error);
  } else {
    SendHeaders(call);
  }
}

// The data provider's pointer stays valid, because a call lives as long as its stream.
void Connection::SendHeaders(Call* call) {
  call->has_headers_sent_ = true;
  const std::array<nghttp2_nv, 2> headers = {Literal(":status", "200"),
                                             Literal("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.source.ptr = call;
  provider.read_callback = ReadAnswer;
  nghttp2_submit_response(session(), call->id_, headers.data(), headers.size(), &provider);
}

void Connection::SendOnlyTrailers(Call* call, const Status& status) {
  const std::string code = std::to_string(static_cast<int>(status.code));
  const std::string message = MessageHeader(status.message);
  std::vector<nghttp2_nv> headers = {Literal(":status", "200"),
                                     Literal("content-type", "application/grpc"),
                                     Named("grpc-status", code), Named("grpc-message", message)};
  for (const auto& [name, value] : call->trailers_) headers.push_back(Field(name, value));
  nghttp2_submit_response(session(), call->id_, headers.data(), headers.size(), nullptr);
}

// Answers a request that is not a gRPC call.
void Connection::SendHttpError(Call* call, const std::string& code) {
  const nghttp2_nv status = Named(":status", code);
  nghttp2_submit_response(session(), call->id_, &status, 1, nullptr);
}

ssize_t Connection::ReadAnswer(nghttp2_session*, int32_t, uint8_t* out, size_t size,
                               uint32_t* flags, nghttp2_data_source* source, void* user_data) {
  return static_cast<Connection*>(user_data)->CopyAnswer(static_cast<Call*>(source->ptr), out, size,
                                                         flags);
}

// Copies messages into DATA frames; trailers follow the last one.
ssize_t Connection::CopyAnswer(Call* call, uint8_t* out, size_t size, uint32_t* flags) {
  size_t copied = 0;
  for (;;) {
    copied += call->writer_.Copy(out + copied, size - copied);
    if (call->writer_.has_bytes_left()) return static_cast<ssize_t>(copied);
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    if (call->next_) {
      call->writer_.Begin(*std::exchange(call->next_, std::nullopt));
      continue;
    }
    if (call->last_) {
      *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::string code = std::to_string(static_cast<int>(call->last_->code));
      const std::string message = MessageHeader(call->last_->message);
      std::vector<nghttp2_nv> trailers = {Named("grpc-status", code)};
      if (!call->last_->ok()) trailers.push_back(Named("grpc-message", message));
      for (const auto& [name, value] : call->trailers_) trailers.push_back(Field(name, value));
      nghttp2_submit_trailer(session(), call->id_, trailers.data(), trailers.size());
      return static_cast<ssize_t>(copied);
    }
    call->writer_.End();
    return copied > 0 ? static_cast<ssize_t>(copied) : ssize_t{NGHTTP2_ERR_DEFERRED};
  }
}

}  // namespace colcast::http2
