#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <future>
#include <iomanip>
#include <iterator>
#include <memory>
#include <regex>
#include <string_view>
#include <utility>

#include "server/base/log.h"
#include "server/wire/writer.h"

namespace colcast::tracing {

namespace {

std::string ToKeyValue(const Attribute& attribute) {
  std::string value, pair;
  StringWriter of_value(&value), of_pair(&pair);
  if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    of_value.Field(1, *text);
  } else {
    of_value.Number(3, static_cast<uint64_t>(std::get<int64_t>(attribute.second)));
  }
  of_pair.Field(1, attribute.first);
  of_pair.Field(2, value);
  return pair;
}

std::string ToProto(const Span& span) {
  constexpr int kStatusError = 2;
  std::string proto;
  StringWriter writer(&proto);
  writer.Field(1, span.trace_id);
  writer.Field(2, span.id);
  writer.TextField(4, span.parent_id);
  writer.Field(5, span.name);
  writer.Number(6, static_cast<uint64_t>(span.kind));
  writer.Fixed64(7, static_cast<uint64_t>(span.start));
  writer.Fixed64(8, static_cast<uint64_t>(span.end));
  for (const Attribute& attribute : span.attributes) writer.Field(9, ToKeyValue(attribute));
  if (span.failed) {
    std::string status;
    StringWriter(&status).Number(3, kStatusError);
    writer.Field(15, status);
  }
  return proto;
}

// A message with one field.
std::string InField(uint32_t field, const std::string& body) {
  std::string message;
  StringWriter(&message).Field(field, body);
  return message;
}

}  // namespace

std::string WriteExportRequest(const std::string& service_name, const std::vector<Span>& spans) {
  std::string scope_spans = InField(1, InField(1, "colcast.server"));
  for (const Span& span : spans) StringWriter(&scope_spans).Field(2, ToProto(span));
  const std::string resource = InField(1, ToKeyValue({"service.name", service_name}));
  return InField(1, InField(1, resource) + InField(2, scope_spans));
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

using boost::asio::ip::tcp;
using Addresses = tcp::resolver::results_type;

// A lookup that hangs cannot be cancelled, so it runs on its own thread, which is abandoned after
// `timeout`. While an abandoned lookup hangs, no new lookup starts.
Status Resolve(const Endpoint& endpoint, std::chrono::milliseconds timeout, Addresses* addresses) {
  struct Lookup {
    Addresses addresses;
    boost::system::error_code error;
  };
  static std::atomic<bool> hangs{false};
  if (hangs) return Unavailable("the lookup of its name hangs");
  auto done = std::make_shared<std::promise<Lookup>>();
  std::future<Lookup> found = done->get_future();
  Thread thread;
  const auto look_up = [done, endpoint] {
    Lookup lookup;
    boost::asio::io_context io;
    lookup.addresses = tcp::resolver(io).resolve(endpoint.host, endpoint.port, lookup.error);
    hangs = false;
    done->set_value(std::move(lookup));
  };
  hangs = true;
  Status status = StartThread("the lookup of " + endpoint.host, look_up, &thread);
  if (!status.ok()) {
    hangs = false;
    return status;
  }
  thread.detach();
  if (found.wait_for(timeout) != std::future_status::ready) {
    return Unavailable("its name was not resolved within ", timeout.count(), " ms");
  }
  const Lookup lookup = found.get();
  *addresses = lookup.addresses;
  return lookup.error ? Unavailable(lookup.error.message()) : OkStatus();
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
  const std::string where = endpoint.host + ':' + endpoint.port + endpoint.target;
  Addresses addresses;
  if (Status status = Resolve(endpoint, timeout, &addresses); !status.ok()) {
    return Unavailable(where, ": ", status.message);
  }
  tcp::iostream stream;
  stream.expires_after(timeout);
  for (const auto& address : addresses) {
    stream.clear();
    stream.connect(address.endpoint());
    if (stream) break;
  }
  stream << "POST " << endpoint.target << " HTTP/1.1\r\nHost: " << endpoint.host << ':'
         << endpoint.port
         << "\r\nContent-Type: application/x-protobuf\r\nContent-Length: " << body.size()
         << "\r\nConnection: close\r\n\r\n"
         << body << std::flush;
  std::string version;
  int code = 0;
  stream >> std::setw(8) >> version >> code;  // "HTTP/1.1 200"
  if (stream.error()) return Unavailable(where, ": ", stream.error().message());
  if (!stream || version.rfind("HTTP/1.", 0) != 0) return Unavailable(where, " is not HTTP/1");
  if (code / 100 == 2) return OkStatus();
  return Unavailable(where, " answers HTTP ", code);
}

}  // namespace colcast::tracing
