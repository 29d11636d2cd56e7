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
// outputs, sent the same columns and their rows fit together; if not, and after an error of the
// joined run, each runs alone, and so they do where joined columns would take more than
// max_expanded_bytes beyond what was sent. REQUIRES that programs.CanBeJoined(), and plans of
// `programs` or of a signature that it stands in for, whose inputs and outputs are the same.
void RunJoined(const Programs& programs, const BatchRules& rules, const JoinedRuns& runs,
               absl::Span<BatchMember* const> members);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
