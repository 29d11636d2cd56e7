// Requests to one signature, run as one: their rows put together, the answer taken apart again.
#ifndef COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
#define COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/engine.h"
#include "server/engine/program/batch.h"
#include "server/engine/program/programs.h"

namespace colcast::engine {

// Answers tf.Examples that are read as columns. False, and nothing in the result, where the
// signature itself has to answer them.
using RunExamples = std::function<bool(const DecodedRequest& examples, RunResult* result)>;

// How requests are run.
struct JoinedRuns {
  // One by itself: sets the member's status and outputs.
  absl::FunctionRef<void(BatchMember* member)> alone;
  // All of several, if the signature's only input takes tf.Examples; else null.
  RunExamples examples;
  // Whether one that fits no other is run as several are.
  bool one_too = false;
};

// Rows to be added so that there are as many as allowed.
int64_t RowsToAdd(const BatchRules& rules, int64_t rows);

// Answers all members, whose plans are RequestPlans. They run together if they ask for the same
// outputs, have the same columns and their rows fit together. Each runs alone if not, if the joined
// run fails, or if joined columns would exceed the received ones by max_expanded_bytes.
// REQUIRES programs.CanBeJoined(), and plans of `programs` or of a signature with the same inputs
// and outputs that it replaces.
void RunJoined(const Programs& programs, const BatchRules& rules, const JoinedRuns& runs,
               absl::Span<BatchMember* const> members);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
