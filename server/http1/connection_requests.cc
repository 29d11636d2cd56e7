// The part of Connection that handles what the client sends.
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/http1/connection.h"
#include "server/http1/message.h"

namespace colcast::http {
namespace {

using Header = beast::http::request_header<>;

// Says why the end of the body is uncertain; empty if it is certain. If it is not, the connection
// must be closed: bytes of the body could be misread as the next request (RFC 9112, 6.3).
std::string BadFraming(const Header& head) {
  const size_t hosts = head.count(Field::host);
  if (hosts > 1 || (hosts == 0 && head.version() >= 11)) return "expected one Host header";
  if (head.count(Field::content_length) > 1) return "more than one Content-Length";
  const std::string_view length = ToStd(head[Field::content_length]);
  if (length.find_first_not_of("0123456789") != std::string_view::npos) {
    return "Content-Length is not a number";
  }
  const size_t codings = head.count(Field::transfer_encoding);
  if (codings == 0) return "";
  if (head.version() < 11) return "Transfer-Encoding in HTTP/1.0";
  const std::string coding(head[Field::transfer_encoding]);
  if (codings == 1 && EqualIgnoringCase(coding, "chunked")) return "";
  return "Transfer-Encoding " + coding + ": expected chunked, alone";
}

// A header's last value, which the nearest proxy added.
std::string LastOf(const Header& head, const std::string& name) {
  const auto [begin, end] = head.equal_range(name);
  return begin == end ? std::string() : std::string(ToStd(std::prev(end)->value()));
}

// Refuses characters in a chunk's extension that a proxy may read as the end of its line.
struct CheckExtension {
  void operator()(uint64_t, beast::string_view extension, beast::error_code& error) const {
    const auto is_control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; };
    if (std::any_of(extension.begin(), extension.end(), is_control)) {
      error = beast::http::error::bad_chunk_extension;
    }
  }
};

}  // namespace

void Connection::BeginRequest() {
  phase_ = Phase::kIdle;
  refused_with_ = 0;
  SetDeadline(shared_->options.idle_timeout);
  header_bytes_ = 0;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(shared_->options.max_header_bytes));
  parser_->body_limit(shared_->options.max_body_bytes);
  static CheckExtension check_extension;
  parser_->on_chunk_header(check_extension);
}

void Connection::Parse() {
  while (buffer_.size() > 0 && phase_ != Phase::kClosed) {
    const auto bytes = buffer_.data();
    if (phase_ == Phase::kIdle &&
        HasFoldedLine({static_cast<const char*>(bytes.data()), bytes.size()})) {
      return Refuse(400, "a header is folded over several lines");
    }
    Error error;
    const IncomingBody& body = parser_->get().body();
    const size_t received = body.received();
    const int appends = body.appends();
    const size_t understood = parser_->put(bytes, error);
    use_.bytes += body.received() - received;
    use_.items += body.appends() - appends;
    buffer_.consume(understood);
    // The parser's own limit does not count lines that it has already parsed.
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
  const Header& head = parser_->get();
  phase_ = Phase::kReadingBody;
  began_ = Clock::now();
  if (const std::string why = BadFraming(head); !why.empty()) return Refuse(400, why);
  ReadHead(head);
  if (refused_with_ == 0 && shared_->router.WantsBody(request_)) {
    const std::shared_ptr<net::Host>& host = this->host();
    parser_->get().body().KeepIn(std::make_unique<RequestMemory>(
        &shared_->poller->hosts().bodies,
        std::shared_ptr<net::Budget::Account>(host, &host->bodies)));
  }
  parser_->eager(true);
  SetDeadline(shared_->options.transfer_timeout);
  if (beast::iequals(head[Field::expect], "100-continue")) Send("HTTP/1.1 100 Continue\r\n\r\n");
}

// Copies everything needed from the header now, because the parser later adds trailers to it.
void Connection::ReadHead(const Header& head) {
  form_.keep_alive = parser_->get().keep_alive();
  form_.http10 = head.version() == 10;
  form_.without_body = head.method() == beast::http::verb::head;
  form_.gzip = AcceptsGzip(ToStd(head[Field::accept_encoding]));
  request_.method = std::string(head.method_string());
  request_.target = OriginForm(ToStd(head.target()));
  request_.traceparent = std::string(head["traceparent"]);
  const std::string& caller = shared_->options.caller_header;
  if (!caller.empty()) request_.caller = LastOf(head, caller);
  const std::string encoding(head[Field::content_encoding]);
  request_.gzip = beast::iequals(encoding, "gzip") || beast::iequals(encoding, "x-gzip") ||
                  beast::iequals(encoding, "deflate");
  if (!encoding.empty() && !request_.gzip && !beast::iequals(encoding, "identity")) {
    refused_with_ = 415;
    refusal_ = "Content-Encoding " + encoding + ": expected gzip, deflate or none";
  } else if (const Status status = CheckClientReads(began_); !status.ok()) {
    refused_with_ = HttpCode(status.code);
    refusal_ = status.message;
  }
}

void Connection::RequestRead() {
  phase_ = Phase::kAnswering;
  deadline_ = Clock::time_point::max();
  auto message = parser_->release();
  const Status refusal = message.body().refusal();
  const bool too_large = message.body().too_large();
  message.body().MoveTo(&request_);
  if (refused_with_ != 0) return Answer(ErrorResponse(refused_with_, refusal_));
  if (!refusal.ok()) {
    return Answer(too_large ? ErrorResponse(413, refusal.message) : ErrorResponse(refusal));
  }
  ++use_.calls;
  shared_->router.Route(std::static_pointer_cast<Connection>(shared_from_this()));
}

void Connection::Refuse(const Error& error) {
  using Reason = beast::http::error;
  const HttpServer::Options& options = shared_->options;
  if (error == Reason::header_limit) {
    Refuse(431, "the header is over " + std::to_string(options.max_header_bytes) + " bytes");
  } else if (error == Reason::body_limit) {
    Refuse(413, "the body is over " + std::to_string(options.max_body_bytes) +
                    " bytes (--max_request_bytes)");
  } else if (error == Reason::need_more) {
    Refuse(431,
           "a chunk's header or the trailers are over " + std::to_string(kReadBytes) + " bytes");
  } else {
    Refuse(400, "malformed HTTP: " + error.message());
  }
}

// Answers an invalid request and closes the connection, as the next request's start is unknown.
void Connection::Refuse(int code, const std::string& why) {
  form_ = {};
  Write(ErrorResponse(code, why));
}

}  // namespace colcast::http
