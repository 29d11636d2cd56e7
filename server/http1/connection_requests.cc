// Of a connection: what its client sends.
#include <utility>

#include "server/http1/connection.h"
#include "server/http1/framing.h"
#include "server/http1/gzip.h"

namespace colcast::http {
namespace {

constexpr size_t kMaxLoggedTarget = 200;

BadFraming FramingOf(const beast::http::request_header<>& head) {
  std::string codings;
  const auto [begin, end] = head.equal_range(Field::transfer_encoding);
  if (begin == end) return {};
  if (head.version() < 11) return {400, "Transfer-Encoding in HTTP/1.0"};
  for (auto field = begin; field != end; ++field) {
    codings.append(field == begin ? "" : ",").append(field->value().to_string());
  }
  return CheckTransferEncoding(codings);
}

}  // namespace

void Connection::BeginRequest() {
  phase_ = Phase::kIdle;
  SetDeadline(shared_->options.idle_timeout);
  header_bytes_ = 0;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(shared_->options.max_header_bytes));
  parser_->body_limit(shared_->options.max_body_bytes);
}

// As far as it goes.
void Connection::Parse() {
  while (buffer_.size() > 0 && !closed_) {
    Error error;
    const size_t understood = parser_->put(buffer_.data(), error);
    buffer_.consume(understood);
    // The parser's own limit is of what it has not understood yet: lines that come one by one are.
    if (phase_ == Phase::kIdle) header_bytes_ += understood;
    if (header_bytes_ > shared_->options.max_header_bytes) {
      return Refuse(beast::http::error::header_limit);
    }
    const bool is_unfinished = error == beast::http::error::need_more;
    if (is_unfinished && buffer_.size() < kReadBytes) return;
    if (error) return Refuse(error);
    if (phase_ == Phase::kIdle && parser_->is_header_done()) HeaderRead();
    if (phase_ == Phase::kReadingBody && parser_->is_done()) RequestRead();
    if (phase_ != Phase::kIdle && phase_ != Phase::kReadingBody) return;
  }
}

void Connection::HeaderRead() {
  const auto& head = parser_->get();
  phase_ = Phase::kReadingBody;
  is_useful_ = true;
  request_line_ = head.method_string().to_string() + ' ' +
                  head.target().substr(0, kMaxLoggedTarget).to_string();
  if (const BadFraming bad = FramingOf(head); bad.code != 0) return Refuse(bad.code, bad.why);
  request_.method = std::string(head.method_string());
  request_.target = OriginForm(ToStd(head.target()));
  if (shared_->router.WantsBody(request_)) {
    parser_->get().body().KeepIn(std::make_unique<RequestMemory>(&shared_->memory));
  }
  parser_->eager(true);
  SetDeadline(shared_->options.transfer_timeout);
  if (beast::iequals(head[Field::expect], "100-continue")) Send("HTTP/1.1 100 Continue\r\n\r\n");
}

void Connection::RequestRead() {
  phase_ = Phase::kAnswering;
  deadline_ = Clock::time_point::max();
  auto message = parser_->release();
  keep_alive_ = message.keep_alive();
  head_ = message.method() == beast::http::verb::head;
  accepts_gzip_ = AcceptsGzip(ToStd(message[Field::accept_encoding]));
  const std::string encoding(message[Field::content_encoding]);
  const Status refusal = message.body().refusal();
  const bool too_large = message.body().too_large();
  message.body().MoveTo(&request_);
  request_.traceparent = std::string(message["traceparent"]);
  request_.caller = CallerOf(message);
  request_.inference_header_length = std::string(message["Inference-Header-Content-Length"]);
  request_.gzip = beast::iequals(encoding, "gzip") || beast::iequals(encoding, "x-gzip") ||
                  beast::iequals(encoding, "deflate");
  if (!encoding.empty() && !request_.gzip && !beast::iequals(encoding, "identity")) {
    return Answer(
        ErrorResponse(415, "Content-Encoding " + encoding + ": expected gzip, deflate or none"));
  }
  if (!refusal.ok()) {
    return Answer(too_large ? ErrorResponse(413, refusal.message) : ErrorResponse(refusal));
  }
  shared_->router.Route(std::static_pointer_cast<Connection>(shared_from_this()));
}

std::string Connection::CallerOf(const beast::http::request_header<>& head) const {
  const callers::NameSource& names = shared_->options.names;
  if (names.certificate && socket_->is_tls()) return socket_->CertificateName();
  return names.header.empty() ? "" : std::string(head[names.header]);
}

void Connection::Refuse(const Error& error) {
  using Reason = beast::http::error;
  const HttpServer::Options& options = shared_->options;
  if (error == Reason::header_limit) {
    Refuse(431, "the header is over " + std::to_string(options.max_header_bytes) + " bytes");
  } else if (error == Reason::body_limit) {
    Refuse(413, "the body is over " + std::to_string(options.max_body_bytes) +
                    " bytes, the limit of a request");
  } else if (error == Reason::need_more) {
    Refuse(431,
           "a chunk's header or the trailers are over " + std::to_string(kReadBytes) + " bytes");
  } else {
    Refuse(400, "malformed HTTP: " + error.message());
  }
}

// Answers what is no request and closes: where the next one would begin is unknown.
void Connection::Refuse(int code, const std::string& why) {
  keep_alive_ = head_ = accepts_gzip_ = false;
  Write(ErrorResponse(code, why));
}

}  // namespace colcast::http
