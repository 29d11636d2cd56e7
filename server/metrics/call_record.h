// What happened to a call. The code that handles the call fills in the record; metrics, the request
// log and tracing read it. kCallMetrics lists the metrics of calls.
#ifndef COLCAST_SERVER_METRICS_CALL_RECORD_H_
#define COLCAST_SERVER_METRICS_CALL_RECORD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/metrics/histogram.h"

namespace colcast::metrics {

struct CallRecord {
  using Duration = std::chrono::steady_clock::duration;
  using Time = std::chrono::steady_clock::time_point;

  std::string_view api;         // Predict, Classify, Regress, MultiInference, ModelInfer
  std::string_view entrypoint;  // "GRPC" or "REST"
  // Taken from the servable; empty if none was found, so that clients cannot invent labels.
  std::string_view model_name;
  std::string_view signature_name;  // see inference::LabelOf()
  int64_t model_version = 0;
  StatusCode code = StatusCode::kOk;

  Time received;
  Duration latency{};     // from receipt to answer
  Duration queue_wait{};  // from receipt until dequeued; part of latency
  // Time of the model run, which other requests may share; part of latency.
  Duration runtime{};
  Time run_start{};  // start of the first run; the epoch if there was none
  size_t request_bytes = 0;
  size_t response_bytes = 0;
  engine::ExpansionStats expansion;
  int64_t unknown_keys = 0;  // keys not in item tables, for which defaults were used

  bool joined = false;  // ran together with other requests
  int requests_in_run = 1;
  // Requests in the run if this request led it; 0 if another request did or there was no run.
  int64_t run_requests = 0;
  int64_t run_rows = 0;  // rows in the run that this request led
  int slices = 0;        // 0 if the request was not split
};

// A metric of calls, by model, signature, API and entry point. To add one, add a row to
// kCallMetrics and, if the record lacks the value, a field above.
struct CallMetric {
  enum class Of { kAnsweredOk, kAll };

  const char* name;
  const char* help;
  const Buckets& (*buckets)();  // null for a counter
  Of of;
  int64_t (*value)(const CallRecord& record);  // negative if there is nothing to observe
};

inline int64_t Nanoseconds(CallRecord::Duration time) {
  return std::chrono::nanoseconds(time).count();
}

inline constexpr CallMetric kCallMetrics[] = {
    {":colcast:request_latency_microseconds", "Time from the receipt of a request to its answer.",
     LatencyBuckets, CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return Nanoseconds(record.latency); }},
    {":colcast:queue_wait_microseconds",
     "Time from the receipt of a request until a worker took it.", LatencyBuckets,
     CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return Nanoseconds(record.queue_wait); }},
    {":colcast:runtime_microseconds", "Time in the model, including making the tensors.",
     LatencyBuckets, CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return Nanoseconds(record.runtime); }},
    {":colcast:request_bytes", "Size of a request's message.", ByteBuckets,
     CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return static_cast<int64_t>(record.request_bytes); }},
    {":colcast:response_bytes", "Size of a response's message.", ByteBuckets,
     CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return static_cast<int64_t>(record.response_bytes); }},
    {":colcast:rows", "Candidates of a request.", RowBuckets, CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return record.expansion.rows; }},
    {":colcast:run_requests", "Requests that one run of the model answered.", RowBuckets,
     CallMetric::Of::kAll,
     [](const CallRecord& record) {
       return record.run_requests > 0 ? record.run_requests : int64_t{-1};
     }},
    {":colcast:run_rows", "Candidates of one run of the model.", RowBuckets, CallMetric::Of::kAll,
     [](const CallRecord& record) {
       return record.run_requests > 0 ? record.run_rows : int64_t{-1};
     }},
    {":colcast:columns_sent_once_total",
     "Columns that were sent as one row in requests of more rows.", nullptr,
     CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return int64_t{record.expansion.columns_sent_once}; }},
    {":colcast:bytes_saved_total",
     "Bytes that repeating these columns would have added to requests.", nullptr,
     CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return record.expansion.bytes_saved; }},
    {":colcast:transcoded_requests_total", "Requests whose tf.Examples were read as columns.",
     nullptr, CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) { return int64_t{record.expansion.transcoded}; }},
    {":colcast:transcoded_rows_total", "tf.Examples that were read as columns.", nullptr,
     CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) {
       return record.expansion.transcoded ? record.expansion.rows : 0;
     }},
    {":colcast:transcoded_repeated_bytes_total",
     "Bytes of these tf.Examples that repeat features common to all Examples of a request.",
     nullptr, CallMetric::Of::kAnsweredOk,
     [](const CallRecord& record) {
       return record.expansion.transcoded ? record.expansion.repeated_bytes : 0;
     }},
    {":colcast:joined_requests_total", "Requests that ran together with others.", nullptr,
     CallMetric::Of::kAll, [](const CallRecord& record) { return int64_t{record.joined}; }},
    {":colcast:divided_requests_total", "Requests that ran in slices.", nullptr,
     CallMetric::Of::kAll, [](const CallRecord& record) { return int64_t{record.slices > 0}; }},
    {":colcast:pieces_total", "Slices that these requests ran in.", nullptr, CallMetric::Of::kAll,
     [](const CallRecord& record) { return int64_t{record.slices}; }},
};

inline constexpr size_t kNumCallMetrics = std::size(kCallMetrics);

// The index of the metric with this name. Does not compile for an unknown name.
constexpr size_t CallMetricIndex(std::string_view name) {
  size_t index = 0;
  while (std::string_view(kCallMetrics[index].name) != name) ++index;
  return index;
}

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_CALL_RECORD_H_
