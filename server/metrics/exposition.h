// Writes the metrics for Prometheus. Metrics that TensorFlow Serving also has keep its names and
// labels; other names begin with :colcast: or process_. docs/metrics.md describes each one.
#ifndef COLCAST_SERVER_METRICS_EXPOSITION_H_
#define COLCAST_SERVER_METRICS_EXPOSITION_H_

#include <vector>

#include "server/metrics/metrics.h"
#include "server/metrics/text_writer.h"

namespace colcast::metrics {

void WriteRequests(const std::vector<RequestSeries>& requests, TextWriter* writer);
void WriteProcess(TextWriter* writer);

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_EXPOSITION_H_
