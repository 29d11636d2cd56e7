// One connection, with or without TLS: reads a request, waits for its answer, writes it, and so on.
// For http_server.cc only: everything else stays free of Boost.
#ifndef COLCAST_SERVER_HTTP_SESSION_H_
#define COLCAST_SERVER_HTTP_SESSION_H_

#include <poll.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast.hpp>
#include <boost/beast/ssl.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/base/certificate_name.h"
#include "server/base/log.h"
#include "server/http/beast_message.h"
#include "server/http/connections.h"
#include "server/http/framing.h"
#include "server/http/gzip.h"
#include "server/http/http_server.h"

namespace colcast::http {

namespace net = boost::asio;

template <typename Stream>
class Session final : public Exchange,
                      public Connection,
                      public std::enable_shared_from_this<Session<Stream>> {
 public:
  // `options`, `router` and `memory` outlive the session.
  Session(Stream stream, std::unique_ptr<Connections::Place> place,
          const HttpServer::Options& options, const Router& router, MemoryLimit* memory)
      : place_(std::move(place)),
        options_(options),
        router_(router),
        memory_(memory),
        stream_(std::move(stream)) {}

  void Start() {
    if (!place_->Hold(this->weak_from_this())) return;
    Error gone;
    const auto peer = socket().socket().remote_endpoint(gone);
    if (!gone) client_ = std::hash<std::string>()("http:" + peer.address().to_string());
    if constexpr (kTls) {
      socket().expires_after(options_.idle_timeout);
      stream_.async_handshake(net::ssl::stream_base::server, [self = Self()](const Error& error) {
        if (!error) return self->ReadHeader();
        if (IsPlainHttp(error)) self->AskForTls();
      });
    } else {
      ReadHeader();
    }
  }

  auto executor() { return stream_.get_executor(); }

  Request& request() override { return request_; }

  uint64_t client() const override { return client_; }

  bool cancelled() const override {
    pollfd poll_fd = {socket_fd_, POLLRDHUP, 0};
    return poll(&poll_fd, 1, 0) > 0;
  }

  void Answer(Response response) override {
    if (accepts_gzip_ && response.body.size() >= kLeastToCompress) {
      response.body = Gzip(response.body);
      response.headers.emplace_back("Content-Encoding", "gzip");
    }
    net::post(executor(), [self = Self(), response = std::move(response)]() mutable {
      self->Write(std::move(response));
    });
  }

  void Stop() override {
    net::post(executor(), [self = Self()] {
      if (self->phase_ == Phase::kIdle) self->socket().cancel();
    });
  }

  void Cut(bool log) override {
    net::post(executor(), [self = Self(), log] {
      if (log) LogWarning("HTTP: cut " + self->Describe());
      self->socket().cancel();
      // Not closed: a handler may ask the socket whether the client has hung up.
      Error ignored;
      self->socket().socket().shutdown(net::socket_base::shutdown_both, ignored);
    });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;
  // Below this the headers weigh more than what is saved.
  static constexpr size_t kLeastToCompress = 8 << 10;
  static constexpr std::chrono::seconds kLinger{2};
  static constexpr size_t kMaxLoggedTarget = 200;
  // Read at once; also the most that a chunk's header or the trailers, which are read whole, can
  // be.
  static constexpr size_t kReadBytes = 64 << 10;

  // kIdle: no request has come, or not all of its header.
  enum class Phase { kIdle, kReadingBody, kAnswering, kWriting };

  std::shared_ptr<Session> Self() { return this->shared_from_this(); }
  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }

  void ReadHeader() {
    if (place_->stopped()) return;
    phase_ = Phase::kIdle;
    parser_.emplace();
    parser_->header_limit(options_.max_header_bytes);
    parser_->body_limit(options_.max_body_bytes);
    socket().expires_after(options_.idle_timeout);
    beast::http::async_read_header(stream_, buffer_, *parser_,
                                   [self = Self()](const Error& error, size_t) {
                                     if (error) return self->OnReadError(error);
                                     self->ReadBody();
                                   });
  }

  void ReadBody() {
    const auto& head = parser_->get();
    phase_ = Phase::kReadingBody;
    request_line_ = head.method_string().to_string() + ' ' +
                    head.target().substr(0, kMaxLoggedTarget).to_string();
    if (const BadFraming bad = FramingOf(head); bad.code != 0) return Refuse(bad.code, bad.why);
    request_.method = std::string(head.method_string());
    request_.target = OriginForm(ToStd(head.target()));
    if (router_.WantsBody(request_)) {
      parser_->get().body().KeepIn(std::make_unique<RequestMemory>(memory_));
    }
    if (!parser_->is_done()) buffer_.reserve(kReadBytes);
    socket().expires_after(options_.transfer_timeout);
    if (beast::iequals(parser_->get()[Field::expect], "100-continue")) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      net::async_write(stream_, net::buffer(kContinue.data(), kContinue.size()),
                       [self = Self()](const Error& error, size_t) {
                         if (!error) self->ReadRest();
                       });
    } else {
      ReadRest();
    }
  }

  void ReadRest() {
    beast::http::async_read(stream_, buffer_, *parser_,
                            [self = Self()](const Error& error, size_t) {
                              if (error) return self->OnReadError(error);
                              self->OnRequest();
                            });
  }

  void OnReadError(const Error& error) {
    using Reason = beast::http::error;
    if (error == Reason::header_limit) {
      Refuse(431, "the header is over " + std::to_string(options_.max_header_bytes) + " bytes");
    } else if (error == Reason::body_limit) {
      Refuse(413, "the body is over " + std::to_string(options_.max_body_bytes) +
                      " bytes, the limit of a request");
    } else if (error == Reason::buffer_overflow) {
      Refuse(431,
             "a chunk's header or the trailers are over " + std::to_string(kReadBytes) + " bytes");
    } else if (error == Reason::end_of_stream || error == Reason::partial_message ||
               error.category() != Error(Reason::bad_method).category()) {
      return;  // nobody waits for an answer: the end of the session closes the socket
    } else {
      Refuse(400, "malformed HTTP: " + error.message());
    }
  }

  static BadFraming FramingOf(const beast::http::request_header<>& head) {
    std::string codings;
    const auto [begin, end] = head.equal_range(Field::transfer_encoding);
    if (begin == end) return {};
    if (head.version() < 11) return {400, "Transfer-Encoding in HTTP/1.0"};
    for (auto field = begin; field != end; ++field) {
      codings.append(field == begin ? "" : ",").append(field->value().to_string());
    }
    return CheckTransferEncoding(codings);
  }

  void OnRequest() {
    phase_ = Phase::kAnswering;
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
    socket().expires_never();
    socket_fd_ = socket().socket().native_handle();
    if (!encoding.empty() && !request_.gzip && !beast::iequals(encoding, "identity")) {
      return Answer(
          ErrorResponse(415, "Content-Encoding " + encoding + ": expected gzip, deflate or none"));
    }
    if (!refusal.ok()) {
      return Answer(too_large ? ErrorResponse(413, refusal.message) : ErrorResponse(refusal));
    }
    router_.Route(Self());
  }

  static bool IsPlainHttp(const Error& handshake) {
    return handshake.category() == net::error::get_ssl_category() &&
           ERR_GET_REASON(handshake.value()) == SSL_R_HTTP_REQUEST;
  }

  // Answers in clear what came in place of a handshake and is not looked at any further.
  void AskForTls() {
    static constexpr std::string_view kAnswer =
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
        "Content-Type: text/plain\r\nContent-Length: 64\r\n\r\n"
        "A plain HTTP request came to a port that speaks TLS: use https.\n";
    socket().expires_after(kLinger);
    net::async_write(socket(), net::buffer(kAnswer.data(), kAnswer.size()),
                     [self = Self()](const Error& error, size_t) {
                       if (!error) self->ClosePlain();
                     });
  }

  std::string CallerOf(const beast::http::request_header<>& head) {
    if constexpr (kTls) {
      if (options_.names.certificate) return CertificateName(stream_.native_handle());
    }
    if (options_.names.header.empty()) return "";
    return std::string(head[options_.names.header]);
  }

  // Answers what is no request and closes: where the next one would begin is unknown.
  void Refuse(int code, const std::string& why) {
    keep_alive_ = head_ = accepts_gzip_ = false;
    Write(ErrorResponse(code, why));
  }

  void Write(Response response) {
    phase_ = Phase::kWriting;
    auto& message = response_.emplace();
    message.result(static_cast<unsigned>(response.code));
    message.version(11);
    message.set(Field::date, HttpTime());
    message.set(Field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive_ && !place_->draining());
    message.body() = std::move(response.body);
    message.prepare_payload();
    request_.body.Clear();
    request_.memory.reset();
    socket().expires_after(options_.transfer_timeout);
    const auto then = [self = Self()](const Error& error, size_t) { self->OnWritten(error); };
    if (head_) {
      serializer_.emplace(message);
      beast::http::async_write_header(stream_, *serializer_, then);
    } else {
      beast::http::async_write(stream_, message, then);
    }
  }

  void OnWritten(const Error& error) {
    const bool again = !error && response_->keep_alive();
    serializer_.reset();
    response_.reset();
    if (buffer_.size() == 0) buffer_.shrink_to_fit();
    if (again) return ReadHeader();
    if (!error) Close();
  }

  // What the client may still be sending is read for a moment: closing at once would reset the
  // connection, and the last answer could be lost with it.
  void Close() {
    socket().expires_after(kLinger);
    if constexpr (kTls) {
      stream_.async_shutdown([self = Self()](const Error&) {});
    } else {
      ClosePlain();
    }
  }

  void ClosePlain() {
    Error ignored;
    socket().socket().shutdown(net::socket_base::shutdown_send, ignored);
    Drain();
  }

  void Drain() {
    buffer_.clear();
    socket().async_read_some(buffer_.prepare(16 << 10),
                             [self = Self()](const Error& error, size_t) {
                               if (!error) self->Drain();
                             });
  }

  // Who the client is and how far its request has come.
  std::string Describe() {
    Error error;
    const auto peer = socket().socket().remote_endpoint(error);
    std::string text = error ? "a client that has gone" : peer.address().to_string();
    if (!error) text += ':' + std::to_string(peer.port());
    switch (phase_) {
      case Phase::kIdle:
        return text + " before a request";
      case Phase::kReadingBody:
        return text + ": " + request_line_ + ", of whose body " +
               std::to_string(parser_->get().body().received()) + " bytes have come";
      case Phase::kAnswering:
        return text + ": " + request_line_ + ", which is being answered";
      case Phase::kWriting:
        return text + ": " + request_line_ + ", whose answer is not taken";
    }
    return text;
  }

  static std::string_view ToStd(beast::string_view text) { return {text.data(), text.size()}; }

  const std::unique_ptr<Connections::Place> place_;  // given back after the socket is closed
  const HttpServer::Options& options_;
  const Router& router_;
  MemoryLimit* const memory_;
  Stream stream_;
  int socket_fd_ = -1;
  uint64_t client_ = 0;
  beast::flat_buffer buffer_{kReadBytes};
  std::optional<beast::http::request_parser<Body>> parser_;
  std::optional<beast::http::response<beast::http::string_body>> response_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;
  Request request_;
  Phase phase_ = Phase::kIdle;
  std::string request_line_;  // for the log
  bool keep_alive_ = false;
  bool head_ = false;
  bool accepts_gzip_ = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_SESSION_H_
