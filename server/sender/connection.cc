#include "server/net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "server/base/text.h"
#include "server/http2/grpc.h"
#include "server/sender/sender.h"

namespace colcast::sender {
namespace {

// Returns -1 if the text is not a number.
int NumberIn(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace

void Answer::AddHeader(std::string_view name, std::string_view value) {
  if (name == ":status") {
    http_status_ = NumberIn(value);
  } else if (name == "content-type") {
    content_type_ = value;
  } else if (name == "grpc-status") {
    grpc_status_ = NumberIn(value);
  } else if (name == "grpc-message") {
    grpc_message_ = PercentDecode(value);
  }
}

void Answer::AddData(const uint8_t* data, size_t size) {
  body_.append(reinterpret_cast<const char*>(data), size);
}

std::string_view Answer::message() const {
  return std::string_view(body_).substr(http2::kMessagePrefixBytes);
}

Status Answer::StatusOf(uint32_t http2_error) const {
  if (http_status_ != 200 || !http2::IsGrpc(content_type_) || !grpc_status_) {
    if (http2_error != NGHTTP2_NO_ERROR) {
      const bool is_refused = http2_error == NGHTTP2_REFUSED_STREAM;
      return Error(is_refused ? StatusCode::kUnavailable : StatusCode::kInternal,
                   "the stream ended with HTTP/2 error ", nghttp2_http2_strerror(http2_error));
    }
    // An overloaded proxy answers with one of these codes.
    const bool is_busy = http_status_ == 429 || (http_status_ >= 502 && http_status_ <= 504);
    return Error(is_busy ? StatusCode::kUnavailable : StatusCode::kUnknown, "HTTP status ",
                 http_status_, " and content type \"", content_type_, "\", without a grpc-status");
  }
  if (*grpc_status_ < 0 || *grpc_status_ >= kNumStatusCodes) {
    return Error(StatusCode::kUnknown, "unknown grpc-status: ", grpc_message_);
  }
  if (*grpc_status_ != 0) return {static_cast<StatusCode>(*grpc_status_), grpc_message_};
  if (body_.size() >= http2::kMessagePrefixBytes) {
    const auto prefix = http2::PrefixOf(message().size(), false);
    if (std::equal(prefix.begin(), prefix.end(), body_.begin(),
                   [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); })) {
      return OkStatus();
    }
  }
  return Internal("the answer, ", body_.size(), " bytes, is not one uncompressed message");
}

struct Connection::Callbacks {
  static Connection& Of(void* user_data) { return *static_cast<Connection*>(user_data); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void* user_data) {
    Call* const call = Of(user_data).Find(frame->hd.stream_id);
    if (call != nullptr) call->answer.AddHeader(http2::View(name), http2::View(value));
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size,
                    void* user_data) {
    Call* const call = Of(user_data).Find(stream);
    if (call != nullptr) call->answer.AddData(data, size);
    return 0;
  }
  static int OnFrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    if (frame->hd.type == NGHTTP2_GOAWAY) Of(user_data).is_going_away_ = true;
    return 0;
  }
  static int OnStreamClosed(nghttp2_session*, int32_t stream, uint32_t error, void* user_data) {
    const auto node = Of(user_data).calls_.extract(stream);
    if (node.empty()) return 0;
    const Call& call = node.mapped();
    Of(user_data).ended_(call, call.answer.StatusOf(error));
    return 0;
  }
  static ssize_t ReadRequest(nghttp2_session*, int32_t stream, uint8_t* out, size_t size,
                             uint32_t* flags, nghttp2_data_source*, void* user_data) {
    Call* const call = Of(user_data).Find(stream);
    if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const size_t copied = call->request->copy(reinterpret_cast<char*>(out), size, call->bytes_sent);
    call->bytes_sent += copied;
    if (call->bytes_sent == call->request->size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(copied);
  }

  static const nghttp2_session_callbacks* All() {
    static const nghttp2_session_callbacks* const all = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_header_callback2(callbacks, OnHeader);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrameReceived);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClosed);
      return callbacks;
    }();
    return all;
  }
};

std::shared_ptr<Connection> Connection::Start(const Options& options, const addrinfo& address,
                                              net::Poller* poller, Ended ended) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  auto started = std::make_shared<Connection>(options, fd, poller, std::move(ended));
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const int silence = 10'000;  // milliseconds after which a silent peer is considered gone
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
  const bool fails = connect(fd, address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS;
  const int error = errno;
  started->number_ = poller->Add(fd, started);
  if (fails) started->Close(Unavailable(std::strerror(error)));
  return started;
}

Connection::Connection(const Options& options, int socket, net::Poller* poller, Ended ended)
    : options_(options),
      poller_(poller),
      ended_(std::move(ended)),
      transport_(std::make_unique<net::Socket>(socket, options.tls)) {
  nghttp2_session_client_new(&transport_.session(), Callbacks::All(), this);
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, http2::kStreamWindow},
  }};
  nghttp2_session* const session = transport_.session();
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, http2::kConnectionWindow);
}

// nghttp2 queues the call if the server's limit of concurrent streams is reached.
void Connection::Send(Call call) {
  if (!takes_calls()) {
    return ended_(call, error_.ok() ? Unavailable("the server is going away") : error_);
  }
  const std::string timeout = std::to_string(options_.timeout.count()) + 'm';
  const std::array<nghttp2_nv, 8> headers = {
      http2::Literal(":method", "POST"),
      transport_.socket().is_tls() ? http2::Literal(":scheme", "https")
                                   : http2::Literal(":scheme", "http"),
      http2::Named(":path", options_.method),
      http2::Named(":authority", options_.target),
      http2::Literal("te", "trailers"),
      http2::Literal("content-type", "application/grpc"),
      http2::Literal("user-agent", "grpc-c++-colcast"),
      http2::Named("grpc-timeout", timeout),
  };
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::ReadRequest;
  const int32_t stream = nghttp2_submit_request(transport_.session(), nullptr, headers.data(),
                                                headers.size(), &provider, nullptr);
  if (stream < 0) {
    is_going_away_ = true;  // stream numbers are used up
    return ended_(call, Unavailable(nghttp2_strerror(stream)));
  }
  call.deadline = Clock::now() + options_.timeout;
  calls_.emplace(stream, std::move(call));
  Write();
}

Clock::time_point Connection::EndLate(Clock::time_point now) {
  while (!calls_.empty() && calls_.begin()->second.deadline <= now) {
    const auto node = calls_.extract(calls_.begin());
    nghttp2_submit_rst_stream(transport_.session(), NGHTTP2_FLAG_NONE, node.key(), NGHTTP2_CANCEL);
    ended_(node.mapped(), DeadlineExceeded(options_.target, " did not answer in time"));
  }
  Write();
  return calls_.empty() ? Clock::time_point::max() : calls_.begin()->second.deadline;
}

Call* Connection::Find(int32_t stream) {
  const auto place = calls_.find(stream);
  return place == calls_.end() ? nullptr : &place->second;
}

void Connection::Happened(uint32_t) {
  if (!is_connected_) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(transport_.socket().fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Close(Unavailable(std::strerror(error)));
  }
  Read();
  Write();
}

void Connection::Read() {
  for (int i = 0; i < net::kReadsPerTurn && error_.ok(); ++i) {
    switch (transport_.Read()) {
      case http2::Transport::Result::kNothing:
        return;
      case http2::Transport::Result::kSome:
      case http2::Transport::Result::kAll:
        break;  // if the server has also closed, no separate event announces it
      case http2::Transport::Result::kClosed:
        return Close(Unavailable("the connection was closed"));
      case http2::Transport::Result::kBroken:
        return Close(Unavailable("the server did not answer with HTTP/2"));
    }
  }
  poller_->Again(transport_.socket().fd(), number_);
}

void Connection::Write() {
  if (!error_.ok()) return;
  const http2::Transport::Result result = transport_.Write();
  if (result == http2::Transport::Result::kClosed) Close(Unavailable("the connection was closed"));
  if (result != http2::Transport::Result::kAll) return;
  is_connected_ = true;
  if (transport_.is_over()) Close(Unavailable("the connection has ended"));
}

void Connection::Close(const Status& reason) {
  error_ = is_connected_ ? reason
                         : Unavailable("cannot connect to ", options_.target, ": ", reason.message);
  poller_->Remove(transport_.socket().fd(), number_);
  transport_.socket().Close();
  for (const auto& [stream, call] : std::exchange(calls_, {})) ended_(call, error_);
}

}  // namespace colcast::sender
