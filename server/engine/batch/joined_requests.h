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
  // All rows of several.
  absl::FunctionRef<absl::Status(const Batch& batch, const std::vector<int>& outputs,
                                 RunResult* result)>
      joined;
  // Before that, if the signature's only input takes tf.Examples; else null.
  RunExamples examples;
  // Whether `joined` runs one that fits no other, too.
  bool one_too = false;
};

// Rows to be added so that there are as many as allowed.
int64_t RowsToAdd(const BatchRules& rules, int64_t rows);

// Answers all members. They run together if they ask for the same outputs, sent the same columns
// and their rows fit together; what is wrong with one is found before and is its own error, for
// then it runs alone. After an error of the joined run all run alone, and so they do where joined
// columns would take more than max_expanded_bytes beyond what was sent. REQUIRES that all are
// requests to the signature of `programs` and that programs.CanBeJoined().
void RunJoined(const Programs& programs, const BatchRules& rules, const JoinedRuns& runs,
               absl::Span<BatchMember* const> members);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
