// Looks at the metrics once a second, for what is told of the last minute.
#ifndef COLCAST_SERVER_METRICS_SAMPLER_H_
#define COLCAST_SERVER_METRICS_SAMPLER_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/metrics/metrics.h"
#include "server/metrics/recent.h"

namespace colcast::metrics {

class Sampler {
 public:
  // Starts a thread. `metrics` must outlive the sampler.
  explicit Sampler(const Metrics* metrics);
  ~Sampler();

  const Recent& recent() const { return recent_; }

 private:
  void Run();

  const Metrics* const metrics_;
  Recent recent_;
  std::mutex mutex_;
  std::condition_variable stop_requested_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_SAMPLER_H_
