#include "server/sender/figures.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "server/base/json_writer.h"

namespace colcast::sender {
namespace {

double Percentile(std::vector<double>* values, double percentile) {
  if (values->empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto last = static_cast<double>(values->size() - 1);
  const auto place = values->begin() + static_cast<ptrdiff_t>(last * percentile / 100 + 0.5);
  std::nth_element(values->begin(), place, values->end());
  return *place;
}

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

template <typename T>
void Append(const T* values, size_t count, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

void AddPercentiles(const char* name, std::vector<double>* values, JsonWriter* json) {
  json->Object(name, [&] {
    json->Add({{"p50", Percentile(values, 50)},
               {"p95", Percentile(values, 95)},
               {"p99", Percentile(values, 99)}});
  });
}

}  // namespace

std::string Figures(const Job& job, const Outcome& outcome) {
  std::vector<double> latencies;
  std::vector<double> lateness;
  for (size_t i = 0; i < job.calls.size(); ++i) {
    const CallRecord& call = outcome.calls[i];
    lateness.push_back(1000 * (call.sent - job.calls[i].due));
    if (call.code == 0) latencies.push_back(1000 * (call.answered - job.calls[i].due));
  }
  JsonWriter json;
  json.Object([&] {
    json.Add({{"calls", static_cast<int64_t>(job.calls.size())},
              {"answered", static_cast<int64_t>(latencies.size())},
              {"seconds", outcome.seconds},
              {"sender_cpu_seconds", CpuSeconds()}});
    AddPercentiles("latency_ms", &latencies, &json);
    AddPercentiles("lateness_ms", &lateness, &json);
    json.Object("errors", [&] {
      for (const auto& [code, errors] : outcome.errors) {
        json.Object(StatusName(code), [&, &errors = errors] {
          json.Add({{"count", errors.count}, {"first", std::string_view(errors.first)}});
        });
      }
    });
  });
  return json.text();
}

std::string Records(const Outcome& outcome) {
  std::string bytes;
  Append(outcome.calls.data(), outcome.calls.size(), &bytes);
  const uint64_t count = outcome.answers.size();
  Append(&count, 1, &bytes);
  for (const auto& [number, answer] : outcome.answers) {
    const uint64_t head[] = {number, answer.size()};
    Append(head, 2, &bytes);
    bytes += answer;
  }
  return bytes;
}

}  // namespace colcast::sender
