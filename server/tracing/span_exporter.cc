#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <cstring>
#include <iterator>
#include <regex>
#include <string_view>
#include <utility>

#include "server/base/log.h"
#include "server/wire/reader.h"

namespace colcast::tracing {

namespace {

void AppendNumber(int field, uint64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3, out);
  AppendVarint(value, out);
}

void AppendBytes(int field, std::string_view bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

void AppendFixed64(int field, int64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 1, out);
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));  // the format and the machine are little-endian
  out->append(bytes, sizeof(value));
}

std::string ToKeyValue(const Attribute& attribute) {
  std::string value;
  if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    AppendBytes(1, *text, &value);
  } else if (const auto* flag = std::get_if<bool>(&attribute.second)) {
    AppendNumber(2, *flag ? 1 : 0, &value);
  } else {
    AppendNumber(3, static_cast<uint64_t>(std::get<int64_t>(attribute.second)), &value);
  }
  std::string pair;
  AppendBytes(1, attribute.first, &pair);
  AppendBytes(2, value, &pair);
  return pair;
}

std::string ToProto(const Span& span) {
  constexpr int kStatusError = 2;
  std::string proto;
  AppendBytes(1, span.trace_id, &proto);
  AppendBytes(2, span.id, &proto);
  if (!span.parent_id.empty()) AppendBytes(4, span.parent_id, &proto);
  AppendBytes(5, span.name, &proto);
  AppendNumber(6, static_cast<uint64_t>(span.kind), &proto);
  AppendFixed64(7, span.start, &proto);
  AppendFixed64(8, span.end, &proto);
  for (const Attribute& attribute : span.attributes) AppendBytes(9, ToKeyValue(attribute), &proto);
  if (span.failed) {
    std::string status;
    AppendNumber(3, kStatusError, &status);
    AppendBytes(15, status, &proto);
  }
  return proto;
}

}  // namespace

std::string WriteExportRequest(const std::string& service_name, const std::vector<Span>& spans) {
  std::string resource;
  AppendBytes(1, ToKeyValue({"service.name", service_name}), &resource);
  std::string scope;
  AppendBytes(1, "colcast.server", &scope);
  std::string scope_spans;
  AppendBytes(1, scope, &scope_spans);
  for (const Span& span : spans) AppendBytes(2, ToProto(span), &scope_spans);
  std::string resource_spans;
  AppendBytes(1, resource, &resource_spans);
  AppendBytes(2, scope_spans, &resource_spans);
  std::string request;
  AppendBytes(1, resource_spans, &request);
  return request;
}

SpanExporter::SpanExporter(Options options, Send send)
    : options_(options), send_(std::move(send)), thread_("spans", [this] { Run(); }) {}

SpanExporter::~SpanExporter() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wakeup_.notify_one();
}

void SpanExporter::Add(std::vector<Span> spans) {
  bool full = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spans.size() > options_.max_queued_spans - queue_.size()) {
      dropped_.fetch_add(static_cast<int64_t>(spans.size()), std::memory_order_relaxed);
      return;
    }
    std::move(spans.begin(), spans.end(), std::back_inserter(queue_));
    full = queue_.size() >= options_.batch_spans;
  }
  if (full) wakeup_.notify_one();
}

void SpanExporter::Run() {
  for (bool stopping = false; !stopping;) {
    std::vector<Span> spans;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wakeup_.wait_for(lock, options_.interval, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || queue_.size() >= options_.batch_spans;
      });
      stopping = stopping_;
      spans.swap(queue_);
    }
    for (size_t at = 0; at < spans.size(); at += options_.batch_spans) {
      const size_t end = std::min(spans.size(), at + options_.batch_spans);
      const auto begin = std::make_move_iterator(spans.begin());
      if (SendBatch({begin + at, begin + end})) continue;
      // The remaining batches would fail, too.
      dropped_.fetch_add(static_cast<int64_t>(spans.size() - end), std::memory_order_relaxed);
      break;
    }
  }
}

bool SpanExporter::SendBatch(const std::vector<Span>& spans) {
  const Status status = send_(spans);
  auto& count = status.ok() ? sent_ : dropped_;
  count.fetch_add(static_cast<int64_t>(spans.size()), std::memory_order_relaxed);
  if (!status.ok() && !failing_) LogWarning("spans are dropped: " + status.message);
  failing_ = !status.ok();
  return status.ok();
}

namespace {

namespace beast = boost::beast;
namespace net = boost::asio;
using Error = boost::system::error_code;

// Runs one asynchronous operation to its end. A synchronous one would ignore the stream's deadline.
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
