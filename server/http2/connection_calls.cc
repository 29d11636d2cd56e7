// The part of Connection that handles what the client sends.
#include <algorithm>
#include <utility>

#include "server/http2/connection.h"
#include "server/http2/grpc.h"

namespace colcast::http2 {

namespace {

// A client whose headers exceed the limit more than this many times over is disconnected; below
// that, only the call is refused.
constexpr size_t kMaxOverLimit = 16;
// Consecutive frames without data. A client that reads an answer sends at most one per 16 KB read.
constexpr int kMaxIdleFrames = 10'000;
constexpr size_t kMaxIdleBytes = 16;  // payload of a DATA frame
// If a client reads its answers, about as many frames are queued as it has calls.
constexpr size_t kMaxUnreadFrames = 10'000;

}  // namespace

struct Connection::Callbacks {
  static Connection& Of(void* user_data) { return *static_cast<Connection*>(user_data); }
  static Call* CallOf(nghttp2_session* session, int32_t id) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, id));
  }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* header, void* user_data) {
    Of(user_data).FrameBegun(*header);
    return 0;
  }
  // Frames of unknown types are ignored (RFC 9113, 5.5).
  static int OnExtension(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) {
    return NGHTTP2_ERR_CANCEL;
  }
  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    return Of(user_data).BeginHeaders(*frame);
  }
  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void* user_data) {
    ++Of(user_data).use_.items;
    Call* const call = CallOf(session, frame->hd.stream_id);
    if (call == nullptr) return 0;
    // Drops trailers, which gRPC clients never send, because they must not change the headers of a
    // call that is being handled.
    const bool is_trailer = frame->headers.cat != NGHTTP2_HCAT_REQUEST;
    call->AddHeader(is_trailer ? std::string_view() : View(name), View(value));
    if (call->header_bytes_ > kMaxOverLimit * Of(user_data).shared_->options.max_header_bytes) {
      Of(user_data).EndAbuse("too_many_headers");
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
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

  static const nghttp2_session_callbacks* All() {
    static const nghttp2_session_callbacks* const all = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, OnBeginFrame);
      nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, OnExtension);
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

const nghttp2_session_callbacks* Connection::AllCallbacks() { return Callbacks::All(); }

void Connection::FrameBegun(const nghttp2_frame_hd& header) {
  ++use_.items;
  const bool brings_something = header.type == NGHTTP2_HEADERS ||
                                (header.type == NGHTTP2_DATA && header.length > kMaxIdleBytes);
  idle_frames_ = brings_something ? 0 : idle_frames_ + 1;
  if (idle_frames_ > kMaxIdleFrames) EndAbuse("too_many_frames");
  if (nghttp2_session_get_outbound_queue_size(session()) > kMaxUnreadFrames) {
    EndAbuse("too_many_unread_frames");
  }
}

int Connection::BeginHeaders(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  // Reserves the slot first: if this threw later, the call would never be released.
  calls_.push_back(nullptr);
  Call* call = nullptr;
  try {
    call = new Call(Self(), frame.hd.stream_id);
  } catch (...) {
    calls_.pop_back();
    throw;
  }
  call->place_ = calls_.size() - 1;
  calls_.back() = call;
  had_calls_ = true;
  shared_->calls.fetch_add(1, std::memory_order_relaxed);
  return nghttp2_session_set_stream_user_data(session(), call->id_, call);
}

int Connection::FrameReceived(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_PING) PingReceived(frame);
  if (frame.hd.type == NGHTTP2_SETTINGS && phase_ == Phase::kNew) {
    phase_ = Phase::kOpen;
  }
  if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return 0;
  Call* const call = Callbacks::CallOf(session(), frame.hd.stream_id);
  if (call == nullptr) return 0;
  const bool begins = frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
  if (begins) HeadersReceived(call);
  if (!call->has_ended_ && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) Ended(call);
  return 0;
}

void Connection::HeadersReceived(Call* call) {
  const size_t most = shared_->options.max_header_bytes;
  if (call->header_bytes_ > most) {
    return Refuse(call, ResourceExhausted("the call has ", call->header_bytes_,
                                          " bytes of headers; at most ", most, " are allowed"));
  }
  if (call->http_method_ != "POST" || !IsGrpc(call->content_type_)) {
    call->has_ended_ = true;
    return SendHttpError(call, call->http_method_ != "POST" ? "405" : "415");
  }
  if (call->bad_timeout_) {
    return Refuse(call, Internal("grpc-timeout is '", *call->bad_timeout_,
                                 "': expected 1 to 8 digits and a unit: H, M, S, m, u, n"));
  }
  const auto method = shared_->methods.find(call->path_);
  if (method == shared_->methods.end()) {
    return Refuse(call, Error(StatusCode::kUnimplemented, "there is no method ", call->path_));
  }
  call->method_ = &method->second;
}

int Connection::Data(Call* call, const uint8_t* data, size_t size) {
  nghttp2_session_consume_connection(session(), size);
  if (call == nullptr || call->has_ended_) return 0;
  use_.bytes += size;
  nghttp2_session_consume_stream(session(), call->id_, size);
  size_t read = size;
  Status status = call->reader_.Read(transport_.block(), data, &read);
  if (status.code == StatusCode::kResourceExhausted) status.message += " (--max_request_bytes)";
  if (status.ok() && read < size) {
    status = Internal("a unary call has one message, but more arrived");
  }
  if (!status.ok()) Refuse(call, std::move(status));
  return 0;
}

// Called when the client has sent its whole request.
void Connection::Ended(Call* call) {
  if (!call->reader_.has_message()) {
    return Refuse(call, Internal("the call ended before its message was complete"));
  }
  ++use_.calls;
  call->request_ = call->reader_.Take();
  call->has_ended_ = true;
  if (call->is_stream()) {
    call->stream_ = call->method_->open(call);
    return;
  }
  call->holders_.fetch_add(1, std::memory_order_relaxed);
  call->method_->handle(call);
}

// Refuses the call, and reads no more of it.
void Connection::Refuse(Call* call, Status status) {
  call->has_ended_ = true;
  if (!call->is_stream()) call->holders_.fetch_add(1, std::memory_order_relaxed);
  call->Finish(std::move(status));
}

int Connection::FrameSent(const nghttp2_frame& frame) {
  const uint8_t type = frame.hd.type;
  if (type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) {
    phase_ = Phase::kFailed;
  }
  if (type == NGHTTP2_RST_STREAM) CountReset(frame.rst_stream.error_code);
  if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) return 0;
  ping_strikes_ = 0;
  idle_frames_ = 0;
  if (type == NGHTTP2_DATA) {
    use_.bytes += frame.hd.length;
    ticks_without_answer_ = 0;
  }
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  const int32_t id = frame.hd.stream_id;
  if (nghttp2_session_get_stream_remote_close(session(), id) == 0) {
    nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

// Resets that nghttp2 sends for a client's errors also count, since a client can provoke them
// (CVE-2025-8671).
void Connection::CountReset(uint32_t error) {
  if (error == NGHTTP2_NO_ERROR || error == NGHTTP2_CANCEL) return;
  if (++resets_ > shared_->options.max_resets_per_second) EndAbuse("too_many_resets");
}

int Connection::CallClosed(Call* call) {
  calls_.back()->place_ = call->place_;
  calls_[call->place_] = calls_.back();
  calls_.pop_back();
  shared_->calls.fetch_sub(1, std::memory_order_relaxed);
  call->cancelled_.store(true, std::memory_order_relaxed);
  call->stream_.reset();
  call->unread_.Return();
  call->Release();
  return 0;
}

}  // namespace colcast::http2
