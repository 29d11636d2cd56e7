// Answers several requests to one signature in one run: stacks their rows, then gives each request
// its rows of the outputs.
#ifndef COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
#define COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/engine/engine.h"

namespace colcast::engine {

// The number of rows to add to reach the next allowed batch size.
int64_t RowsToAdd(const BatchRules& rules, int64_t rows);

// Answers all members, whose plans are RequestPlans. Members run together if they ask for the same
// outputs, send the same columns and have rows of compatible shapes. They run alone otherwise, or
// if the joined run fails or the joined columns would exceed the received ones by more than
// max_expanded_bytes. `alone` runs one request by itself, and sets the member's status and outputs.
// REQUIRES at least one member, and plans of the same programs and rules that may be joined.
void RunJoined(absl::FunctionRef<void(BatchMember* member)> alone,
               absl::Span<BatchMember* const> members);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_JOINED_REQUESTS_H_
