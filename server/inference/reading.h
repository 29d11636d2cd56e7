// One request to Predict that a worker has read, and what is known of it.
#ifndef COLCAST_SERVER_INFERENCE_READING_H_
#define COLCAST_SERVER_INFERENCE_READING_H_

#include <cstdint>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/predict_run.h"
#include "server/inference/servable.h"
#include "server/scheduling/run_memory.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::inference {

struct Reading {
  PredictMember* member = nullptr;
  scheduling::RequestClass* of = nullptr;  // null if the model has no such signature
  engine::RequestProfile profile;
  scheduling::Clock::duration cost{};  // as estimated; zero if nothing is known
  int64_t input_bytes = 0;
  bool whole = false;  // it is not to be split: its slices did not make it up
};

// Reads the request, or finishes it with its error: then false.
bool Read(PredictMember* member, scheduling::Clock::duration waited, Reading* reading);

// What the whole request needs in one run.
scheduling::RunNeeds NeedsOf(const Reading& reading);

// Why there will never be memory for the request, or what else is wrong with it.
Status Refusal(const Reading& reading, const scheduling::WorkerPool& workers);

// What the model knows of a request by sizes. Nothing has been checked: it may claim any number of
// rows.
engine::RequestProfile ProfileOf(const DecodedRequest& request, const Servable& servable);

// INVALID_ARGUMENT beyond the most rows that a request may have, as TensorFlow Serving's batching
// has it.
Status CheckRows(const engine::RequestProfile& profile, const scheduling::RequestClass& of);

// What the queue is told. `of` is null if the model has no such signature.
scheduling::JobProfile JobProfileOf(const engine::RequestProfile& known,
                                    scheduling::RequestClass* of, scheduling::Clock::duration cost);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_READING_H_
