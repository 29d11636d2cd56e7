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
#include "server/engine/engine.h"
#include "server/engine/program/programs.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Columns of one row go into every slice, all others are decoded once and split. Where the
// signature has stages, the user's is run once and the slices get its states.
class SlicedRequest final : public Slices {
 public:
  using RunRequest = std::function<absl::Status(const DecodedRequest& request, RunResult* result)>;

  // Null as Model::Split() has it, and where results depend on the greatest length of lists that
  // have several. `run` runs a request as Model::Predict() does. `request`, `rules`, `programs` and
  // what `run` refers to must outlive the slices; a slice has one of the allowed sizes, if there
  // are any of at most the request's rows. REQUIRES a request to the signature of `programs` and
  // that programs.CanBeSplit().
  static std::unique_ptr<Slices> Create(const Programs& programs, const DecodedRequest& request,
                                        const BatchRules& rules, RunRequest run);

  int64_t rows_left() const override;
  int Take(int64_t rows) override;
  int64_t rows(int slice) const override { return At(slice).run_rows; }
  void Run(int slice) override;
  Status Join(std::unique_ptr<Outputs>* outputs) override;

 private:
  struct Slice {
    DecodedRequest request;
    int64_t first = 0;     // of run_rows
    int64_t rows = 0;      // that are its own
    int64_t run_rows = 0;  // with those of its neighbours that fill it up
    int64_t skipped = 0;   // of these, those before its own
    absl::Status status;
    RunResult result;
  };

  SlicedRequest(const Programs& programs, const DecodedRequest& request, const BatchRules& rules,
                RunRequest run)
      : programs_(&programs), request_(&request), rules_(&rules), run_(std::move(run)) {}

  absl::Status LayOut(const PlannedRequest& planned);
  Slice& At(int slice) const;
  void SetRequest(Slice* slice) const;
  absl::Status JoinTensors(RunResult* result) const;

  const Programs* const programs_;
  const DecodedRequest* const request_;
  const BatchRules* const rules_;
  const RunRequest run_;
  int64_t rows_ = 0;
  ExpansionStats expansion_;
  bool has_user_states_ = false;
  std::vector<tensorflow::Tensor> user_states_;
  std::vector<const Column*> once_;    // columns that are the same for every slice
  std::vector<const Column*> by_row_;  // the others: the request's, or those laid out here
  DecodedRequest laid_out_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;                 // rows
  mutable std::deque<Slice> slices_;  // each stays where it is
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_SLICED_REQUEST_H_
