// Runs several requests to one signature as one: stacks their rows, then gives each request its
// rows of the outputs.
#ifndef COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
#define COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/engine.h"
#include "server/engine/program/programs.h"

namespace colcast::engine {

// Answers tf.Examples by reading them as columns. Returns false, with the result unchanged, if the
// signature itself must answer them.
using RunExamples = std::function<bool(const DecodedRequest& examples, RunResult* result)>;

// How RunJoined() runs requests.
struct JoinedRuns {
  // Runs one request by itself; sets the member's status and outputs.
  absl::FunctionRef<void(BatchMember* member)> alone;
  // Runs the tf.Examples of several requests; null unless that is the signature's only input.
  RunExamples examples;
};

// The number of rows to add to reach the next allowed batch size.
int64_t RowsToAdd(const BatchRules& rules, int64_t rows);

// Answers all members, whose plans are RequestPlans. Members run together if they ask for the same
// outputs, send the same columns and have rows of compatible shapes. They run alone otherwise, or
// if the joined run fails or the joined columns would exceed the received ones by more than
// max_expanded_bytes. REQUIRES programs.CanBeJoined(), and plans made by `programs`.
void RunJoined(const Programs& programs, const BatchRules& rules, const JoinedRuns& runs,
               absl::Span<BatchMember* const> members);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
