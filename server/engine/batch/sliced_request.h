// One request split by its rows, so that several threads can run it.
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
#include "server/engine/decoded_column.h"
#include "server/engine/engine.h"
#include "server/engine/planned_request.h"
#include "server/engine/program/batch.h"
#include "server/engine/program/programs.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Columns of one row go into every slice, all others are decoded once and split. Where the
// signature has stages, the users' is run once and the slices get its states.
class SlicedRequest final : public Slices {
 public:
  // Runs a slice's rows.
  using RunRows = std::function<absl::Status(const Batch& batch, const std::vector<int>& outputs,
                                             RunResult* result)>;

  // Null as Model::Split() has it, where results depend on the greatest length of lists that have
  // several, and where another domain than the users' has an index: slices would share its rows.
  // `examples` is null unless the signature's only input takes tf.Examples. `request`, `rules`,
  // `programs` and what the functions refer to must outlive the slices; a slice has one of the
  // allowed sizes, if there are any of at most the request's rows. REQUIRES a request to the
  // signature of `programs` and that programs.CanBeSplit().
  static std::unique_ptr<Slices> Create(const Programs& programs, const DecodedRequest& request,
                                        const BatchRules& rules, RunRows run,
                                        RunExamples examples = nullptr);

  int64_t rows_left() const override;
  int Take(int64_t rows) override;
  int64_t rows(int slice) const override { return At(slice).run_rows; }
  void Run(int slice) override;
  Status Join(std::unique_ptr<Outputs>* outputs) override;

 private:
  struct Slice {
    int64_t first = 0;     // of run_rows
    int64_t rows = 0;      // that are its own
    int64_t run_rows = 0;  // with those of its neighbours that fill it up
    int64_t skipped = 0;   // of these, those before its own
    absl::Status status;
    RunResult result;
  };

  // A slice's rows, and what holds them.
  struct SliceBatch {
    Batch batch;
    std::deque<DecodedColumn> columns;
  };

  SlicedRequest(const Programs& programs, const DecodedRequest& request, const BatchRules& rules,
                RunRows run, RunExamples examples)
      : programs_(&programs),
        request_(&request),
        rules_(&rules),
        run_(std::move(run)),
        run_examples_(std::move(examples)) {}

  absl::Status LayOut();
  absl::Status LayOutColumn(size_t input);
  Slice& At(int slice) const;
  absl::Status RunSlice(const Slice& slice, RunResult* result) const;
  bool AnswerExamples(const Slice& slice, RunResult* result) const;
  absl::Status SetBatch(const Slice& slice, SliceBatch* made) const;
  absl::Status SliceColumn(const Slice& slice, size_t input, SliceBatch* made) const;
  absl::Status JoinTensors(RunResult* result) const;
  int64_t num_rows() const { return batch_.candidates; }

  const Programs* const programs_;
  const DecodedRequest* const request_;
  const BatchRules* const rules_;
  const RunRows run_;
  const RunExamples run_examples_;
  PlannedRequest planned_;
  Batch batch_;  // all of it; what is to be split in columns that are laid out
  std::deque<DecodedColumn> laid_out_;
  std::vector<tensorflow::Tensor> user_states_;
  std::vector<Bytes> examples_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;                 // rows
  mutable std::deque<Slice> slices_;  // each stays where it is
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_
