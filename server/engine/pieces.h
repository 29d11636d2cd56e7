// One request cut by its rows, so that several threads can run it.
#ifndef COLCAST_SERVER_ENGINE_PIECES_H_
#define COLCAST_SERVER_ENGINE_PIECES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/engine.h"
#include "server/engine/signature_runner.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Columns of one row go into every piece, all others are decoded once and cut. Where the signature
// has parts, the user's is run once and the pieces get its states.
class RequestPieces final : public Pieces {
 public:
  using RunRequest = std::function<absl::Status(const DecodedRequest& request, RunResult* result)>;

  // Null as Model::Divide() has it. `run` runs a request as Model::Predict() does. `request`,
  // `runner` and what `run` refers to must outlive the pieces; a piece has one of the allowed
  // sizes, if there are any of at most the request's rows. REQUIRES a request to the signature of
  // `runner` and that runner.CanBeDivided().
  static std::unique_ptr<Pieces> Create(const SignatureRunner& runner,
                                        const DecodedRequest& request, const BatchRules& rules,
                                        int64_t rows_per_piece, RunRequest run);

  int count() const override { return static_cast<int>(pieces_.size()); }
  int64_t rows(int index) const override { return pieces_[index].run_rows; }
  void Run(int index) override;
  Status Join(std::unique_ptr<Outputs>* outputs) override;

 private:
  struct Piece {
    DecodedRequest request;
    int64_t first = 0;     // of run_rows
    int64_t rows = 0;      // that are its own
    int64_t run_rows = 0;  // with those of its neighbours that fill it up
    int64_t skipped = 0;   // of these, those before its own
    absl::Status status;
    RunResult result;
  };

  RequestPieces(const SignatureRunner& runner, const DecodedRequest& request, RunRequest run)
      : runner_(&runner), request_(&request), run_(std::move(run)) {}

  absl::Status Cut(const SignatureRunner::Received& received, const BatchRules& rules,
                   int64_t rows_per_piece);
  void AddPiece(int64_t first, int64_t rows, int64_t added_rows);
  void SetRequest(Piece* piece) const;
  absl::Status JoinTensors(RunResult* result) const;

  const SignatureRunner* const runner_;
  const DecodedRequest* const request_;
  const RunRequest run_;
  int64_t rows_ = 0;
  ExpansionStats expansion_;
  bool has_user_states_ = false;
  std::vector<tensorflow::Tensor> user_states_;
  std::vector<const Column*> once_;    // columns that are the same for every piece
  std::vector<const Column*> by_row_;  // the others: the request's, or those laid out here
  DecodedRequest laid_out_;
  std::deque<Piece> pieces_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PIECES_H_
