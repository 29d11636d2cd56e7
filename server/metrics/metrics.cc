#include "server/metrics/metrics.h"

namespace colcast::metrics {

void Metrics::Record(const RequestRecord&) {}

}  // namespace colcast::metrics
