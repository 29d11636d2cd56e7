#include "server/http2/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/http2/grpc_headers.h"
#include "server/http2/peer.h"

namespace colcast::http2 {
namespace {

constexpr size_t kBlockBytes = 64 << 10;
constexpr size_t kMinRoom = 16 << 10;
constexpr size_t kMaxOutputBytes = 64 << 10;
// What a client may send before it is told to go on.
constexpr int kStreamWindow = 1 << 20;
constexpr int kConnectionWindow = 16 << 20;
// Then others get their turn.
constexpr int kReadsPerTurn = 16;

std::string_view View(nghttp2_rcbuf* buffer) {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

bool IsGrpc(std::string_view content_type) {
  constexpr std::string_view kGrpc = "application/grpc";
  return content_type.substr(0, kGrpc.size()) == kGrpc;
}

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

std::unique_ptr<nghttp2_option, OptionDeleter> SessionOptions(const ConnectionOptions& options) {
  nghttp2_option* made = nullptr;
  if (nghttp2_option_new(&made) != 0) return nullptr;
  nghttp2_option_set_no_auto_window_update(made, 1);
  const auto resets = static_cast<uint64_t>(options.max_resets_per_second);
  nghttp2_option_set_stream_reset_rate_limit(made, resets, resets);
  return std::unique_ptr<nghttp2_option, OptionDeleter>(made);
}

}  // namespace

// Gives what nghttp2 finds and wants to the connection.
struct Connection::Callbacks {
  static Connection& Of(void* user_data) { return *static_cast<Connection*>(user_data); }
  static Call* CallOf(nghttp2_session* session, int32_t id) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, id));
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return Of(user_data).BeginHeaders(*frame);
  }
  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void*) {
    Call* const call = CallOf(session, frame->hd.stream_id);
    if (call != nullptr) call->AddHeader(View(name), View(value));
    return 0;
  }
  static int OnData(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t size,
                    void* user_data) {
    return Of(user_data).Data(CallOf(session, id), data, size);
  }
  static int OnFrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return Of(user_data).FrameReceived(*frame);
  }
  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return Of(user_data).FrameSent(*frame);
  }
  static int OnStreamClosed(nghttp2_session* session, int32_t id, uint32_t, void* user_data) {
    Call* const call = CallOf(session, id);
    return call == nullptr ? 0 : Of(user_data).CallClosed(call);
  }

  // Made once, for all connections.
  static const nghttp2_session_callbacks* All() {
    static const nghttp2_session_callbacks* const all = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
      nghttp2_session_callbacks_set_on_header_callback2(callbacks, OnHeader);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrameReceived);
      nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClosed);
      return callbacks;
    }();
    return all;
  }
};

void Connection::Start(std::unique_ptr<Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared) {
  const auto connection =
      std::make_shared<Connection>(std::move(socket), std::move(peer), std::move(shared));
  if (connection->Begin()) connection->Do(kWrite);
}

Connection::Connection(std::unique_ptr<Socket> socket, std::string peer,
                       std::shared_ptr<Shared> shared)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      host_(HostOf(peer_)),
      shared_(std::move(shared)) {
  shared_->connections.fetch_add(1);
}

Connection::~Connection() {
  nghttp2_session_del(session_);
  if (!closed_) shared_->connections.fetch_sub(1);
}

bool Connection::Begin() {
  const ConnectionOptions& options = shared_->options;
  const auto session_options = SessionOptions(options);
  if (session_options == nullptr ||
      nghttp2_session_server_new2(&session_, Callbacks::All(), this, session_options.get()) != 0) {
    return false;
  }
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options.max_header_bytes},
  }};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  // Until it is taken here, no other thread does what the poller finds.
  taken_ = true;
  number_ = shared_->poller->Add(socket_->fd(), shared_from_this());
  taken_ = false;
  return true;
}

void Connection::Happened(uint32_t events) {
  unsigned work = 0;
  if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0 || socket_->is_tls()) work |= kRead;
  if ((events & EPOLLOUT) != 0 || socket_->is_tls()) work |= kWrite;
  Do(work);
}

void Connection::Answer(Call* call, std::optional<Message> message, Status status) {
  const std::shared_ptr<Connection> self =
      shared_from_this();  // the call may be the last to hold it
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
  work_.fetch_or(kAnswers);
  if (!taken_.load()) shared_->poller->Again(socket_->fd(), number_);
}

void Connection::Do(unsigned work) {
  work_.fetch_or(work);
  while (work_.load() != 0 && !taken_.exchange(true)) {
    DoNow(work_.exchange(0));
    taken_.store(false);
  }
}

void Connection::DoNow(unsigned work) {
  if (!closed_) {
    if ((work & kRead) != 0) Read();
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
  work |= work_.fetch_and(~unsigned{kAnswers}) & kAnswers;  // those of calls that came
  if ((work & kAnswers) != 0) SendAnswers();
  if (!closed_) Write();
  TellWhatWasSent();
}

void Connection::Read() {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (closed_ || !ReadOnce()) return;
  }
  shared_->poller->Again(socket_->fd(), number_);
}

// False when all has been read.
bool Connection::ReadOnce() {
  if (block_.use_count() == 1) block_used_ = 0;
  if (block_ == nullptr || kBlockBytes - block_used_ < kMinRoom) {
    block_.reset(new uint8_t[kBlockBytes]);
    block_used_ = 0;
  }
  uint8_t* const data = block_.get() + block_used_;
  const size_t room = kBlockBytes - block_used_;
  size_t size = room;
  const Socket::Result result = socket_->Read(data, &size);
  if (result == Socket::Result::kAgain) return false;
  if (result == Socket::Result::kClosed) {
    Close();
    return false;
  }
  block_used_ += size;
  heard_ = true;
  is_new_ = false;
  if (nghttp2_session_mem_recv(session_, data, size) < 0) {
    must_close_ = true;
    return false;
  }
  return size == room || socket_->is_tls();
}

int Connection::BeginHeaders(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (!certificate_name_) certificate_name_ = socket_->CertificateName();
  auto* const call = new Call(shared_from_this(), frame.hd.stream_id);
  call->place_ = calls_.size();
  calls_.push_back(call);
  had_calls_ = true;
  shared_->calls.fetch_add(1, std::memory_order_relaxed);
  return nghttp2_session_set_stream_user_data(session_, call->id_, call);
}

int Connection::FrameReceived(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_PING) PingReceived(frame);
  if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return 0;
  Call* const call = Callbacks::CallOf(session_, frame.hd.stream_id);
  if (call == nullptr) return 0;
  const bool begins = frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
  if (begins) HeadersReceived(call);
  if (!call->refused_ && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) Ended(call);
  return 0;
}

void Connection::HeadersReceived(Call* call) {
  const size_t most = shared_->options.max_header_bytes;
  if (call->header_bytes_ > most) {
    return Refuse(call, ResourceExhausted("the call has ", call->header_bytes_,
                                          " bytes of headers; at most ", most, " are possible"));
  }
  if (!IsGrpc(call->content_type_)) {
    call->refused_ = true;
    return SendUnsupported(call);
  }
  const auto method = shared_->methods.find(call->path_);
  if (method == shared_->methods.end()) {
    return Refuse(call, Error(StatusCode::kUnimplemented, "there is no method ", call->path_));
  }
  call->method_ = &method->second;
  if (call->method_->open) call->handler_ = call->method_->open(call);
}

int Connection::Data(Call* call, const uint8_t* data, size_t size) {
  nghttp2_session_consume_connection(session_, size);
  if (call == nullptr || call->refused_) return 0;
  const bool is_held = call->handler_ && !(call->wants_message_ && call->received_.empty());
  if (is_held) {
    call->held_bytes_ += size;
  } else {
    nghttp2_session_consume_stream(session_, call->id_, size);
  }
  while (size > 0 && !call->refused_) {
    size_t read = size;
    Status status = call->reader_.Read(block_, data, &read);
    if (status.ok() && call->reader_.has_message() && !call->handler_ && read < size) {
      status = Internal("a unary call has one message, and more came");
    }
    if (!status.ok()) {
      Refuse(call, std::move(status));
    } else if (call->handler_ && call->reader_.has_message()) {
      call->received_.push_back(call->reader_.Take());
      Deliver(call);
    }
    data += read;
    size -= read;
  }
  return 0;
}

// The client has sent all that it sends.
void Connection::Ended(Call* call) {
  if (call->handler_) {
    call->all_received_ = true;
    return Deliver(call);
  }
  if (!call->reader_.has_message()) {
    return Refuse(call, Internal("the call ended without a whole message"));
  }
  call->request_ = call->reader_.Take();
  call->refused_ = true;
  call->handled_ = true;
  call->holders_.fetch_add(1, std::memory_order_relaxed);
  call->method_->handle(call);
}

void Connection::Deliver(Call* call) {
  while (call->wants_message_ && !call->cancelled() && !call->refused_) {
    if (!call->received_.empty()) {
      const Message message = std::move(call->received_.front());
      call->received_.pop_front();
      nghttp2_session_consume_stream(session_, call->id_, std::exchange(call->held_bytes_, 0));
      call->wants_message_ = false;
      call->handler_->Received(message);
    } else if (call->all_received_) {
      call->wants_message_ = false;
      call->handler_->Closed();
    } else {
      return;
    }
  }
}

// Nothing more of it is read.
void Connection::Refuse(Call* call, Status status) {
  call->refused_ = true;
  if (call->handler_) return call->End(std::move(status));
  call->handled_ = true;
  call->holders_.fetch_add(1, std::memory_order_relaxed);
  call->Finish(std::move(status));
}

int Connection::FrameSent(const nghttp2_frame& frame) {
  const bool is_answer = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!is_answer) return 0;
  ping_strikes_ = 0;
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  const int32_t id = frame.hd.stream_id;
  if (nghttp2_session_get_stream_remote_close(session_, id) == 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

int Connection::CallClosed(Call* call) {
  calls_.back()->place_ = call->place_;
  calls_[call->place_] = calls_.back();
  calls_.pop_back();
  shared_->calls.fetch_sub(1, std::memory_order_relaxed);
  sent_.erase(std::remove(sent_.begin(), sent_.end(), call), sent_.end());
  call->cancelled_.store(true, std::memory_order_relaxed);
  call->handler_.reset();
  call->CountNoResponse();
  call->Release();
  return 0;
}

void Connection::Write() {
  while (FillOutput()) {
    size_t size = output_.size() - output_sent_;
    const Socket::Result result = socket_->Write(output_.data() + output_sent_, &size);
    if (result == Socket::Result::kAgain) return;
    if (result == Socket::Result::kClosed) return Close();
    output_sent_ += size;
  }
  const bool is_over =
      nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
  if (is_over || must_close_) Close();
}

// False if there is nothing to be sent.
bool Connection::FillOutput() {
  if (output_sent_ < output_.size()) return true;
  output_.clear();
  output_sent_ = 0;
  while (output_.size() < kMaxOutputBytes) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) break;
    output_.insert(output_.end(), data, data + size);
  }
  return !output_.empty();
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  shared_->connections.fetch_sub(1);
  shared_->poller->Remove(socket_->fd(), number_);
  socket_->Close();
  sent_.clear();
  while (!calls_.empty()) CallClosed(calls_.back());
}

}  // namespace colcast::http2
