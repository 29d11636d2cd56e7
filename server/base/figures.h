// Figures of the process that code without access to its metrics counts; metrics/exposition.cc
// writes them for Prometheus.
#ifndef COLCAST_SERVER_BASE_FIGURES_H_
#define COLCAST_SERVER_BASE_FIGURES_H_

#include <atomic>
#include <cstdint>

namespace colcast {

struct Figures {
  std::atomic<int64_t> lost_log_lines{0};   // the queue was full, or writing failed
  std::atomic<int64_t> closed_for_room{0};  // idle connections
  std::atomic<int64_t> refused_certificates{0};
  // When the first certificate of the pair in use ends, in seconds since 1970; 0 without TLS.
  std::atomic<int64_t> certificates_end{0};
};

inline Figures figures;

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_FIGURES_H_
