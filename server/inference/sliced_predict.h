// A large request that several workers run, a slice of its candidates at a time.
#ifndef COLCAST_SERVER_INFERENCE_SLICED_PREDICT_H_
#define COLCAST_SERVER_INFERENCE_SLICED_PREDICT_H_

#include "server/inference/admitted_request.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::inference {

// Runs a request that cannot be had by its slices.
using RunWhole = void (*)(AdmittedRequest admitted, scheduling::WorkerPool* workers);

// Splits the request and hands its slices to the workers; whichever ends last answers it. Where a
// slice fails, `run_whole` gets the request. False if it is not to be split; nothing has happened
// then. REQUIRES a profile that can be split.
bool RunBySlices(AdmittedRequest* admitted, scheduling::WorkerPool* workers, RunWhole run_whole);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_SLICED_PREDICT_H_
