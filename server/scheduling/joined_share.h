// Learns whether requests take less time together than one after the other.
#ifndef COLCAST_SERVER_SCHEDULING_JOINED_SHARE_H_
#define COLCAST_SERVER_SCHEDULING_JOINED_SHARE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "server/scheduling/cost_estimate.h"

namespace colcast::scheduling {

// Joining saves the fixed cost of a run, and loses time once the tensors of many rows no longer fit
// the processor's caches. So it pays for small requests, up to a number of rows that depends on the
// model. It is learnt separately for each size of the joined run, between two powers of two; until
// something is known, joining counts as paying.
//
// All methods may be called from any thread. Of two simultaneous observations one may be lost.
class JoinedShare {
 public:
  JoinedShare();

  // Records that requests of `rows` rows in total ran together in `together`, and would have taken
  // `alone` one after the other.
  void Observe(int64_t rows, CostEstimate::Duration alone, CostEstimate::Duration together);

  // Whether joining pays for a run of `rows` rows. Each refusal weakens a bad estimate slightly, so
  // that joining is tried again after some hundred of them: loads change.
  bool Pays(int64_t rows);

  // The ratio of the time together to the time one after the other; at most 1.
  double Of(int64_t rows) const;

  // True once every 16 calls: that request should run alone although others wait, to measure the
  // time with which joined runs are compared.
  bool WantsOneAlone();

 private:
  using Share = std::atomic<double>;

  std::array<Share, 64> shares_;  // indexed by BitsOf(rows)
  std::atomic<int> runs_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_JOINED_SHARE_H_
