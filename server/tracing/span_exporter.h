// Queues spans and sends them to a collector on its own thread. If the collector is slow
// or missing, spans are lost, but requests are never delayed.
#ifndef COLCAST_SERVER_TRACING_SPAN_EXPORTER_H_
#define COLCAST_SERVER_TRACING_SPAN_EXPORTER_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/base/status.h"
#include "server/base/thread.h"

namespace colcast::tracing {

enum class SpanKind { kInternal = 1, kServer = 2 };  // OTLP's numbers

using Attribute = std::pair<const char*, std::variant<int64_t, std::string>>;

// A span that waits for export.
struct Span {
  std::string trace_id;   // 16 bytes
  std::string id;         // 8 bytes
  std::string parent_id;  // 8 bytes; empty for the first span of a trace
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  int64_t start = 0;  // nanoseconds since 1970
  int64_t end = 0;
  std::vector<Attribute> attributes;
  bool failed = false;
};

// A serialized ExportTraceServiceRequest. All texts must be UTF-8.
std::string WriteExportRequest(const std::string& service_name, const std::vector<Span>& spans);

class SpanExporter {
 public:
  struct Options {
    size_t max_queued_spans = 8192;
    size_t batch_spans = 512;                  // sent as soon as this many wait
    std::chrono::milliseconds interval{1000};  // otherwise sent after this time
  };
  using Send = std::function<Status(const std::vector<Span>& spans)>;

  // `send` is called on the exporter's thread.
  SpanExporter(Options options, Send send);
  // Sends the waiting spans, but stops at the first failure.
  ~SpanExporter();

  // Never waits for `send`. If the queue lacks room for all `spans`, drops them all.
  void Add(std::vector<Span> spans);

  int64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  // Number of spans lost because the queue was full or sending failed.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void Run();
  bool SendBatch(const std::vector<Span>& spans);

  const Options options_;
  const Send send_;
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> dropped_{0};
  bool failing_ = false;  // used only by the exporter's thread
  std::mutex mutex_;
  std::condition_variable wakeup_;
  std::vector<Span> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

// A collector's address.
struct Endpoint {
  std::string host;
  std::string port = "80";
  std::string target = "/";
};

// Parses "http://HOST[:PORT][/PATH]"; HOST may be an IPv6 address in brackets. Returns
// INVALID_ARGUMENT with the URL for anything else. Does not support TLS.
Status ParseEndpoint(const std::string& url, Endpoint* endpoint);

// Sends a POST over HTTP/1.1. Returns UNAVAILABLE, naming the endpoint, if its name is not resolved
// within `timeout`, or if it does not answer 2xx within another `timeout`.
Status PostProtobuf(const Endpoint& endpoint, const std::string& body,
                    std::chrono::milliseconds timeout);

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_SPAN_EXPORTER_H_
