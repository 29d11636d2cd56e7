// The server's metrics: fed by the endpoints and the models, read by /metrics and the status page.
#ifndef COLCAST_SERVER_METRICS_METRICS_H_
#define COLCAST_SERVER_METRICS_METRICS_H_

#include "server/metrics/request_record.h"

namespace colcast::metrics {

// All methods may be called from any thread.
class Metrics {
 public:
  void Record(const RequestRecord& record);
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_METRICS_H_
