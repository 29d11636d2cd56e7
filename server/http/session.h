// One connection, with or without TLS: reads a request, waits for its answer, writes it, and so on.
// For http_server.cc only: everything else stays free of Boost.
#ifndef COLCAST_SERVER_HTTP_SESSION_H_
#define COLCAST_SERVER_HTTP_SESSION_H_

#include <poll.h>
#include <time.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast.hpp>
#include <boost/beast/ssl.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/connections.h"
#include "server/http/gzip.h"
#include "server/http/http_server.h"

namespace colcast::http {

namespace net = boost::asio;
namespace beast = boost::beast;
using Error = boost::system::error_code;
using Field = beast::http::field;

// Now, as HTTP's Date header has it.
inline std::string HttpTime() {
  const time_t now = time(nullptr);
  tm parts;
  char text[40];
  return std::string(
      text, strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts)));
}

// As Beast's string_body, but takes memory for bytes that have come, not for those announced.
struct Body {
  using value_type = std::string;

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, Error& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, Error& error) {
      error = {};
      size_t size = 0;
      for (const auto buffer : beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      return size;
    }
    void finish(Error& error) { error = {}; }

   private:
    value_type& body_;
  };
};

template <typename Stream>
class Session final : public Exchange,
                      public Connection,
                      public std::enable_shared_from_this<Session<Stream>> {
 public:
  // `options` and `router` outlive the session.
  Session(Stream stream, std::unique_ptr<Connections::Place> place,
          const HttpServer::Options& options, const Router& router)
      : place_(std::move(place)), options_(options), router_(router), stream_(std::move(stream)) {}

  void Start() {
    if (!place_->Hold(this->weak_from_this())) return;
    if constexpr (kTls) {
      reading_ = true;
      socket().expires_after(options_.idle_timeout);
      stream_.async_handshake(net::ssl::stream_base::server, [self = Self()](const Error& error) {
        if (!error) self->ReadHeader();
      });
    } else {
      ReadHeader();
    }
  }

  auto executor() { return stream_.get_executor(); }

  Request& request() override { return request_; }

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
      if (self->reading_) self->socket().cancel();
    });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;
  // Below this the headers weigh more than what is saved.
  static constexpr size_t kLeastToCompress = 8 << 10;
  static constexpr std::chrono::seconds kLinger{2};

  std::shared_ptr<Session> Self() { return this->shared_from_this(); }
  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }

  void ReadHeader() {
    if (place_->stopped()) return;
    reading_ = true;
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
    reading_ = false;
    if (error == Reason::header_limit) {
      Refuse(431, "the header is over " + std::to_string(options_.max_header_bytes) + " bytes");
    } else if (error == Reason::body_limit) {
      Refuse(413, "the body is over " + std::to_string(options_.max_body_bytes) +
                      " bytes, the limit of a request");
    } else if (error == Reason::end_of_stream || error == Reason::partial_message ||
               error.category() != Error(Reason::bad_method).category()) {
      return;  // nobody waits for an answer: the end of the session closes the socket
    } else {
      Refuse(400, "malformed HTTP: " + error.message());
    }
  }

  void OnRequest() {
    reading_ = false;
    auto message = parser_->release();
    keep_alive_ = message.keep_alive();
    head_ = message.method() == beast::http::verb::head;
    accepts_gzip_ = AcceptsGzip(ToStd(message[Field::accept_encoding]));
    const std::string encoding(message[Field::content_encoding]);
    request_.method = std::string(message.method_string());
    request_.target = std::string(message.target());
    request_.body = std::move(message.body());
    request_.gzip = beast::iequals(encoding, "gzip") || beast::iequals(encoding, "x-gzip");
    socket().expires_never();
    socket_fd_ = socket().socket().native_handle();
    if (!encoding.empty() && !request_.gzip && !beast::iequals(encoding, "identity")) {
      return Answer(ErrorResponse(415, "Content-Encoding " + encoding + ": expected gzip or none"));
    }
    router_.Route(Self());
  }

  // Answers what is no request and closes: where the next one would begin is unknown.
  void Refuse(int code, const std::string& why) {
    keep_alive_ = head_ = accepts_gzip_ = false;
    Write(ErrorResponse(code, why));
  }

  void Write(Response response) {
    auto& message = response_.emplace();
    message.result(static_cast<unsigned>(response.code));
    message.version(11);
    message.set(Field::date, HttpTime());
    message.set(Field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive_ && !place_->draining());
    message.body() = std::move(response.body);
    message.prepare_payload();
    request_ = {};
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
      Error ignored;
      socket().socket().shutdown(net::socket_base::shutdown_send, ignored);
      Drain();
    }
  }

  void Drain() {
    buffer_.clear();
    socket().async_read_some(buffer_.prepare(16 << 10),
                             [self = Self()](const Error& error, size_t) {
                               if (!error) self->Drain();
                             });
  }

  static std::string_view ToStd(beast::string_view text) { return {text.data(), text.size()}; }

  const std::unique_ptr<Connections::Place> place_;  // given back after the socket is closed
  const HttpServer::Options& options_;
  const Router& router_;
  Stream stream_;
  int socket_fd_ = -1;
  beast::flat_buffer buffer_;
  std::optional<beast::http::request_parser<Body>> parser_;
  std::optional<beast::http::response<beast::http::string_body>> response_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;
  Request request_;
  bool reading_ = false;  // no request is in flight
  bool keep_alive_ = false;
  bool head_ = false;
  bool accepts_gzip_ = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_SESSION_H_
