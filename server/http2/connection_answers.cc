// The part of Connection that sends answers.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http2/connection.h"
#include "server/http2/grpc.h"

namespace colcast::http2 {
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
    if (call->handler_ && call->writer_.has_message()) sent_.push_back(call);
    call->writer_.End();
    return copied > 0 ? static_cast<ssize_t>(copied) : ssize_t{NGHTTP2_ERR_DEFERRED};
  }
}

void Connection::NotifySent() {
  while (!sent_.empty()) {
    Call* const call = sent_.back();
    sent_.pop_back();
    if (call->handler_->Sent()) call->wants_message_ = true;
    Deliver(call);
  }
}

}  // namespace colcast::http2
