// Stacks the rows of several requests: decodes columns directly into the tensors of their run, and
// collects tf.Examples without copying bytes.
#ifndef COLCAST_SERVER_ENGINE_BATCH_STACKED_BATCH_H_
#define COLCAST_SERVER_ENGINE_BATCH_STACKED_BATCH_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/input.h"
#include "server/engine/program/programs.h"
#include "server/engine/row_blocks.h"
#include "server/engine/signature.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast::engine {

class StackedBatch {
 public:
  // Stacks the members' candidates, and their rows of each domain; appends `added_rows` copies of
  // the last member's first candidate. Returns RESOURCE_EXHAUSTED beyond one request's limits on
  // rows and on tensor bytes in excess of the bytes sent. Returns INVALID_ARGUMENT for values that
  // cannot be read. REQUIRES members planned by `programs` that left out the same columns, with at
  // least one row in each column and domain.
  absl::Status Stack(const Programs& programs, absl::Span<const Batch* const> members,
                     int64_t added_rows);

  const Batch& batch() const { return batch_; }

 private:
  using Members = absl::Span<const Batch* const>;

  void SetDomain(size_t domain, Members members, int64_t added_rows);
  std::vector<RowBlock> BlocksOf(size_t input, int domain, Members members,
                                 int64_t added_rows) const;

  Batch batch_;
  std::deque<TensorInput> inputs_;
  std::vector<const Input*> columns_;  // of `batch_`
};

// Adds views of a column's strings: `rows` of them, or a single one repeated. Returns false if the
// column has another dtype or shape, or cannot be read.
bool AddStrings(const Input& column, int64_t rows, std::vector<Bytes>* strings);

// Makes `request` ask for the outputs of `like`, with `strings` as its only input.
void AddExamples(const RequestPlan& like, absl::Span<const Bytes> strings, DecodedRequest* request);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_STACKED_BATCH_H_
