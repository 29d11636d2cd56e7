#include "server/tracing/http_post.h"

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <regex>

namespace colcast::tracing {
namespace {

namespace beast = boost::beast;
namespace net = boost::asio;
using Error = boost::system::error_code;

// Runs one asynchronous operation to its end; only asynchronous ones respect a stream's deadline.
template <typename Start>
Error Await(net::io_context* io, Start start) {
  Error result;
  start([&result](const Error& error, const auto&...) { result = error; });
  io->restart();
  io->run();
  return result;
}

beast::http::request<beast::http::string_body> MakeRequest(const Endpoint& endpoint,
                                                           const std::string& body) {
  beast::http::request<beast::http::string_body> request(beast::http::verb::post, endpoint.target,
                                                         11);
  request.set(beast::http::field::host, endpoint.host + ':' + endpoint.port);
  request.set(beast::http::field::content_type, "application/x-protobuf");
  request.keep_alive(false);
  request.body() = body;
  request.prepare_payload();
  return request;
}

}  // namespace

Status ParseEndpoint(const std::string& url, Endpoint* endpoint) {
  static const std::regex kUrl(
      R"(http://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:([0-9]{1,5}))?(/[!-~]*)?)");
  std::smatch match;
  if (!std::regex_match(url, match, kUrl)) {
    return InvalidArgument("\"", url, "\" is not an endpoint; expected http://HOST:PORT/PATH");
  }
  endpoint->host = match[1];
  if (endpoint->host.front() == '[') {
    endpoint->host = endpoint->host.substr(1, endpoint->host.size() - 2);
  }
  if (match[3].matched) endpoint->port = match[3];
  if (match[4].matched) endpoint->target = match[4];
  return OkStatus();
}

Status PostProtobuf(const Endpoint& endpoint, const std::string& body,
                    std::chrono::milliseconds timeout) {
  net::io_context io;
  Error error;
  const auto addresses = net::ip::tcp::resolver(io).resolve(endpoint.host, endpoint.port, error);
  beast::tcp_stream stream(io);
  stream.expires_after(timeout);
  const auto request = MakeRequest(endpoint, body);
  beast::flat_buffer buffer;
  beast::http::response<beast::http::string_body> response;
  if (!error) error = Await(&io, [&](auto done) { stream.async_connect(addresses, done); });
  if (!error)
    error = Await(&io, [&](auto done) { beast::http::async_write(stream, request, done); });
  if (!error) {
    error = Await(&io, [&](auto done) { beast::http::async_read(stream, buffer, response, done); });
  }
  const std::string where = endpoint.host + ':' + endpoint.port + endpoint.target;
  if (error) return Unavailable(where, ": ", error.message());
  if (response.result_int() / 100 == 2) return OkStatus();
  return Unavailable(where, " answers HTTP ", response.result_int());
}

}  // namespace colcast::tracing
