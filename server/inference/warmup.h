// Replays recorded requests before a model takes traffic, because the first run of a signature does
// one-time work.
#ifndef COLCAST_SERVER_INFERENCE_WARMUP_H_
#define COLCAST_SERVER_INFERENCE_WARMUP_H_

#include <string>

#include "server/base/status.h"
#include "server/inference/servable.h"

namespace colcast::inference {

struct WarmupOptions {
  bool enabled = true;
  int iterations = 1;  // replays per request
};

// Runs the requests in `directory`/assets.extra/tf_serving_warmup_requests, then those in
// colcast_warmup_requests in the same folder, on the calling thread. Either file may be missing;
// each contains at most 1000 TFRecords of tensorflow.serving.PredictionLog. As in TensorFlow
// Serving, the first error ends the warm-up and is returned. Also returns DATA_LOSS from
// TfRecordReader, INVALID_ARGUMENT for a record that is not a PredictionLog or for too many
// records, and UNIMPLEMENTED for a session_run_log or predict_streamed_log. Messages name the file
// and the record, counted from 1. Sets `num_records` to the number of requests run.
Status WarmUp(const Servable& servable, const std::string& directory, const WarmupOptions& options,
              int* num_records);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_WARMUP_H_
