// Whether requests run together in less time than one after the other, learnt from those that did.
#ifndef COLCAST_SERVER_SCHEDULING_JOINED_SHARE_H_
#define COLCAST_SERVER_SCHEDULING_JOINED_SHARE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "server/scheduling/cost_estimate.h"

namespace colcast::scheduling {

// Joining saves what a run costs whatever it has rows. It loses where the tensors of many rows fall
// out of the processor's caches. So it pays for small requests, and up to some number of rows,
// which is the model's. Learnt by rows together, between two powers of two; where nothing is known
// it is taken to pay.
//
// All methods may be called from any thread. Of two observations at once one may be lost.
class JoinedShare {
 public:
  JoinedShare();

  // Requests of `rows` rows in all, which would have taken `alone` one after the other, ran
  // together in `together`.
  void Observe(int64_t rows, CostEstimate::Duration alone, CostEstimate::Duration together);

  // Whether so many rows are worth a run together. What is known not to pay is doubted a little
  // more each time, so that it is tried again some hundred times later: loads change.
  bool Pays(int64_t rows);

  // What so many rows take together of what they take one after the other: at most 1.
  double Of(int64_t rows) const;

  // True once in a while: a request is then to run alone though others wait, for what it takes
  // alone is what a run together is compared with.
  bool WantsOneAlone();

 private:
  using Share = std::atomic<double>;

  std::array<Share, 64> shares_;  // by the bits of the rows
  std::atomic<int> runs_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_JOINED_SHARE_H_
