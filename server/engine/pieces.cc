#include "server/engine/pieces.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/batch.h"
#include "server/engine/parts.h"
#include "server/engine/rows.h"
#include "server/engine/status.h"
#include "server/engine/tensor_outputs.h"
#include "server/wire/column_rows.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

void AddZeros(std::string_view name, int64_t rows, DecodedRequest* request) {
  Column* const column = request->AddColumn(name);
  column->dtype = DT_INT64;
  column->dims = {rows};
  column->values.tensor_content = Bytes(request->Keep(std::string(rows * sizeof(int64_t), '\0')));
}

}  // namespace

std::unique_ptr<Pieces> RequestPieces::Create(const SignatureRunner& runner,
                                              const DecodedRequest& request,
                                              const BatchRules& rules, int64_t rows_per_piece,
                                              RunRequest run) {
  SignatureRunner::Received received;
  if (request.Find(kRowToUser) != nullptr || !runner.Plan(request, &received).ok()) return nullptr;
  if (received.plan.plan.rows <= rows_per_piece) return nullptr;
  std::unique_ptr<RequestPieces> pieces(new RequestPieces(runner, request, std::move(run)));
  const bool is_cut = pieces->Cut(received, rules, std::max<int64_t>(1, rows_per_piece)).ok();
  return is_cut ? std::move(pieces) : nullptr;
}

absl::Status RequestPieces::Cut(const SignatureRunner::Received& received, const BatchRules& rules,
                                int64_t rows_per_piece) {
  rows_ = received.plan.plan.rows;
  expansion_ = SignatureRunner::Summarize(received);
  if (runner_->has_users() && runner_->has_parts()) {
    absl::Status status = runner_->ComputeUserStates(received, &user_states_);
    if (!status.ok()) return status;
    has_user_states_ = true;
  }
  std::vector<const WireColumn*> to_lay_out;
  for (size_t i = 0; i < received.columns.size(); ++i) {
    const WireColumn& column = received.columns[i];
    const bool is_batched = runner_->inputs().inputs()[received.plan.positions[i]].batched();
    if (is_batched && !column.dims().empty() && column.dims()[0] == rows_) {
      if (IsLaidOut(column.column(), column.count())) {
        by_row_.push_back(&column.column());
      } else {
        to_lay_out.push_back(&column);
      }
    } else if (!has_user_states_ || is_batched) {
      once_.push_back(&column.column());
    }
  }
  for (const WireColumn* const column : to_lay_out) {
    const RowBlock block{&column->column(), column->count(), rows_};
    Status status = JoinRows(column->column().name, {block}, PadWith::kZeros, &laid_out_);
    if (!status.ok()) return ToAbsl(status);
  }
  for (const Column& column : laid_out_) by_row_.push_back(&column);
  if (!rules.allowed_batch_sizes.empty()) {
    rows_per_piece += RowsToAdd(rules, rows_per_piece);
    for (int64_t first = 0; first < rows_; first += rows_per_piece) {
      const int64_t rows = std::min(rows_per_piece, rows_ - first);
      AddPiece(first, rows, std::min(RowsToAdd(rules, rows), rows_ - rows));
    }
    return absl::OkStatus();
  }
  // As equal as can be: the last piece is what is waited for.
  const int64_t count = (rows_ + rows_per_piece - 1) / rows_per_piece;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = rows_ * i / count;
    AddPiece(first, rows_ * (i + 1) / count - first, 0);
  }
  return absl::OkStatus();
}

void RequestPieces::AddPiece(int64_t first, int64_t rows, int64_t added_rows) {
  Piece& piece = pieces_.emplace_back();
  piece.rows = rows;
  piece.run_rows = rows + added_rows;
  piece.skipped = std::max<int64_t>(0, first + piece.run_rows - rows_);
  piece.first = first - piece.skipped;
}

void RequestPieces::SetRequest(Piece* piece) const {
  DecodedRequest& request = piece->request;
  request.mutable_model_spec()->signature_name = request_->model_spec().signature_name;
  *request.mutable_output_filter() = request_->output_filter();
  for (const Column* const column : once_) *request.AddColumn(column->name) = *column;
  for (const Column* const column : by_row_) {
    TakeRows(*column, piece->first, piece->run_rows, &request);
  }
  if (has_user_states_) AddZeros(kRowToUser, piece->run_rows, &request);
}

void RequestPieces::Run(int index) {
  Piece& piece = pieces_[index];
  SetRequest(&piece);
  piece.status = has_user_states_ ? runner_->RunOfUser(piece.request, user_states_, &piece.result)
                                  : run_(piece.request, &piece.result);
}

Status RequestPieces::Join(std::unique_ptr<Outputs>* outputs) {
  RunResult result;
  absl::Status status = JoinTensors(&result);
  if (status.ok()) {
    result.expansion = expansion_;
    result.expansion.transcoded = pieces_[0].result.expansion.transcoded;
  } else {
    result = RunResult();
    status = run_(*request_, &result);
  }
  if (status.ok()) *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return FromAbsl(status);
}

absl::Status RequestPieces::JoinTensors(RunResult* result) const {
  for (const Piece& piece : pieces_) {
    if (!piece.status.ok()) return piece.status;
  }
  const RunResult& first = pieces_[0].result;
  result->aliases = first.aliases;
  for (size_t k = 0; k < first.tensors.size(); ++k) {
    const Tensor& like = first.tensors[k];
    Tensor& all = result->tensors.emplace_back();
    int64_t next = 0;
    for (const Piece& piece : pieces_) {
      const Tensor& tensor = piece.result.tensors[k];
      if (tensor.dims() == 0 || tensor.dim_size(0) != piece.run_rows ||
          RowElements(tensor) != RowElements(like) || tensor.dims() != like.dims()) {
        runner_->NeverJoin();
        return absl::FailedPreconditionError(
            absl::StrCat("output \"", first.aliases[k], "\" has other rows than its inputs"));
      }
      if (next == 0) {
        if (absl::Status status = MakeRows(like, rows_, &all); !status.ok()) return status;
      }
      for (int64_t row = 0; row < piece.rows; ++row) {
        CopyRow(tensor, piece.skipped + row, next++, &all);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
