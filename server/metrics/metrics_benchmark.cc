// Measures the cost of metrics per request.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <vector>

#include "server/metrics/metrics.h"

namespace colcast::metrics {
namespace {

// Four threads record requests of eight series, such as two models with four signatures each.
void Record(benchmark::State& state) {
  static Metrics* const metrics = new Metrics;
  std::vector<std::string> signatures;
  for (int i = 0; i < 4; ++i) signatures.push_back("signature_" + std::to_string(i));
  CallRecord record;
  record.api = "Predict";
  record.entrypoint = "GRPC";
  record.latency = std::chrono::microseconds(900);
  record.queue_wait = std::chrono::microseconds(5);
  record.runtime = std::chrono::microseconds(700);
  record.request_bytes = 5000;
  record.response_bytes = 300;
  record.expansion = {500, 150, 74'850};
  size_t n = 0;
  for (auto _ : state) {
    record.model_name = n % 2 == 0 ? "ranker" : "retriever";
    record.signature_name = signatures[n / 2 % signatures.size()];
    metrics->Record(record);
    ++n;
  }
}
BENCHMARK(Record)->Threads(1)->Threads(4);

}  // namespace
}  // namespace colcast::metrics
