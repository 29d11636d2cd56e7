// Runs a large request in slices of its candidates, on several workers.
#ifndef COLCAST_SERVER_INFERENCE_SLICED_PREDICT_H_
#define COLCAST_SERVER_INFERENCE_SLICED_PREDICT_H_

#include "server/inference/run.h"

namespace colcast::inference {

// Runs a whole request, after running it in slices has failed.
using WholeRunner = void (*)(AdmittedRequest admitted, scheduling::WorkerPool* workers);

// Splits the request and submits its slices to the workers; the worker that runs the last slice
// answers it. If a slice fails for a reason other than memory, calls `run_whole`. Returns false and
// changes nothing if the request should not be split. REQUIRES a profile that can be split.
bool RunBySlices(AdmittedRequest* admitted, scheduling::WorkerPool* workers, WholeRunner run_whole);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_SLICED_PREDICT_H_
