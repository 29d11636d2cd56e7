// Process-wide counts for code that has no access to the metrics; metrics/process.cc writes them
// for Prometheus.
#ifndef COLCAST_SERVER_BASE_FIGURES_H_
#define COLCAST_SERVER_BASE_FIGURES_H_

#include <atomic>
#include <cstdint>

namespace colcast {

struct Figures {
  std::atomic<int64_t> lost_log_lines{0};   // the queue was full, or writing failed
  std::atomic<int64_t> closed_for_room{0};  // idle connections closed to make room for new ones
  std::atomic<int64_t> refused_certificates{0};
  // When the first certificate of the chain in use expires, in seconds since 1970; 0 without TLS.
  std::atomic<int64_t> certificates_end{0};
};

inline Figures figures;

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_FIGURES_H_
