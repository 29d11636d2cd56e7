#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/base/log.h"

namespace colcast::tracing {

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
      // Further batches would fail as well.
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

}  // namespace colcast::tracing
