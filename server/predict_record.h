// What became of a request to Predict -> what the metrics want to know of it.
#ifndef COLCAST_SERVER_PREDICT_RECORD_H_
#define COLCAST_SERVER_PREDICT_RECORD_H_

#include "server/inference/predict_run.h"
#include "server/metrics/metrics.h"

namespace colcast {

inline void EnterStats(const inference::PredictStats& stats, metrics::RequestRecord* record) {
  record->queue_wait = stats.waited;
  record->runtime = stats.runtime;
  record->long_lane = stats.long_lane;
  record->run_start = stats.run_start;
  record->joined = stats.joined;
  record->requests_in_run = stats.requests_in_run;
  record->run_requests = stats.run_requests;
  record->run_rows = stats.run_rows;
  record->slice_waits = stats.slice_waits;
}

}  // namespace colcast

#endif  // COLCAST_SERVER_PREDICT_RECORD_H_
