// The queue of spans that wait for a collector, and the thread that sends them. A collector that is
// slow or gone costs spans, never a request's time.
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
#include <thread>
#include <vector>

#include "server/base/status.h"
#include "server/tracing/span.h"

namespace colcast::tracing {

class SpanExporter {
 public:
  struct Options {
    size_t max_queued_spans = 8192;
    size_t batch_spans = 512;                  // sent as soon as so many wait
    std::chrono::milliseconds interval{1000};  // the longest that a span waits otherwise
  };
  using Send = std::function<Status(const std::vector<Span>& spans)>;

  // `send` is called on the exporter's own thread.
  SpanExporter(Options options, Send send);
  // Sends what waits, until the first failure.
  ~SpanExporter();

  // Never waits for `send`. Spans for which there is no room are dropped, all of one call together.
  void Add(std::vector<Span> spans);

  int64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  // Spans without room in the queue, and spans that could not be sent.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void Run();
  bool SendBatch(const std::vector<Span>& spans);

  const Options options_;
  const Send send_;
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> dropped_{0};
  bool failing_ = false;  // of the thread
  std::mutex mutex_;
  std::condition_variable wakeup_;
  std::vector<Span> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_SPAN_EXPORTER_H_
