// One request split by its candidates, so that several threads can run it.
#ifndef COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_
#define COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/batch/joined_requests.h"
#include "server/engine/engine.h"
#include "server/engine/input.h"
#include "server/engine/program/programs.h"
#include "server/tables/overlay.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Columns of one row go into every slice; all others are decoded once and split. If the signature
// has stages, the user stage runs once, and all slices get its states.
class SlicedRequest final : public Slices {
 public:
  // Returns null in the same cases as Model::Split(), and also if a domain other than the user has
  // an index, because slices would share its rows. If results depend on the longest list, each
  // slice also runs a row that has it; returns null if only some sizes are allowed. `examples` is
  // null unless the signature's only input takes tf.Examples. The plan and everything that
  // `examples` refers to must outlive the slices. Slices are filled up to allowed batch sizes with
  // neighboring rows, if the request has enough of them. REQUIRES a plan whose profile can be
  // split.
  static std::unique_ptr<Slices> Create(const RequestPlan& plan, RunExamples examples = nullptr);

  int64_t rows_left() const override;
  int Take(int64_t rows) override;
  int64_t rows(int slice) const override { return At(slice).run_rows; }
  void Run(int slice) override;
  Status Join(std::unique_ptr<Outputs>* outputs) override;

 private:
  struct Slice {
    int64_t first = 0;  // the first row that runs
    int64_t rows = 0;   // rows that the slice answers
    // Rows that run, including the neighboring ones that fill the slice up to an allowed size.
    int64_t run_rows = 0;
    int64_t skipped = 0;  // how many of run_rows precede the slice's own rows
    // Further rows that run, because they have the request's longest lists.
    std::vector<int64_t> longest;
    absl::Status status;
    RunResult result;
  };

  // The lengths of a list, one per row, and for each user a row with the longest list of the user's
  // candidates.
  struct List {
    std::vector<int64_t> lengths;
    std::vector<int64_t> longest_rows;
  };

  // The batch of a slice, and the inputs to which it points.
  struct SliceBatch {
    Batch batch;
    std::deque<TensorInput> inputs;
    std::vector<const Input*> columns;
  };

  SlicedRequest(const RequestPlan& plan, RunExamples examples)
      : plan_(plan),
        programs_(plan.programs),
        run_examples_(std::move(examples)),
        batch_(plan.batch),
        columns_(plan.batch.columns.begin(), plan.batch.columns.end()) {
    batch_.columns = columns_;
  }

  bool ReadLists();
  int64_t UserOf(int64_t row) const;
  std::vector<int64_t> LongestBeside(int64_t first, int64_t rows) const;
  absl::Status LayOut();
  absl::Status LayOutColumn(size_t input);
  Slice& At(int slice) const;
  absl::Status RunSlice(const Slice& slice, RunResult* result) const;
  bool AnswerExamples(const Slice& slice, RunResult* result) const;
  absl::Status SetBatch(const Slice& slice, SliceBatch* made) const;
  absl::Status SliceColumn(const Slice& slice, size_t input, SliceBatch* made) const;
  absl::Status JoinTensors(RunResult* result) const;
  int64_t num_rows() const { return batch_.candidates; }
  int64_t num_users() const {
    return batch_.has_index(Batch::kUser) ? batch_.domains[Batch::kUser].rows : 1;
  }

  const RequestPlan& plan_;
  const Programs* const programs_;
  const RunExamples run_examples_;
  const tables::GenerationPtr tables_ = tables::ReadsGeneration::Here();  // read by all slices
  Batch batch_;  // all candidates; columns to be split are laid out row by row
  std::vector<const Input*> columns_;  // of `batch_`
  std::deque<TensorInput> laid_out_;
  std::vector<tensorflow::Tensor> user_states_;
  std::vector<List> lists_;  // lists of several lengths whose longest one affects results
  std::vector<Bytes> examples_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;                 // rows assigned to slices so far
  mutable std::deque<Slice> slices_;  // a deque, so that references to slices stay valid
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_
