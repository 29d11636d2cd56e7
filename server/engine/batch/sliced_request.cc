#include "server/engine/batch/sliced_request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/batch/batch.h"
#include "server/engine/row_index.h"
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

std::unique_ptr<Slices> SlicedRequest::Create(const Programs& programs,
                                              const DecodedRequest& request,
                                              const BatchRules& rules, RunRequest run) {
  const Signature& signature = programs.signature();
  PlannedRequest planned;
  if (HasRowIndex(request) || !signature.Receive(request, &planned).ok() ||
      !signature.Plan(&planned).ok() || planned.rows() < 2) {
    return nullptr;
  }
  for (const int lengths : signature.lists().own_lengths()) {
    if (!HaveOneLength(static_cast<const WireColumn*>(planned.plan.sources[lengths]))) {
      return nullptr;  // the greatest of a slice may be another than the request's
    }
  }
  std::unique_ptr<SlicedRequest> slices(
      new SlicedRequest(programs, request, rules, std::move(run)));
  return slices->LayOut(planned).ok() ? std::move(slices) : nullptr;
}

absl::Status SlicedRequest::LayOut(const PlannedRequest& planned) {
  rows_ = planned.rows();
  expansion_ = planned.Expansion();
  if (programs_->has_users() && programs_->has_stages()) {
    absl::Status status = programs_->UserStates(planned, &user_states_);
    if (!status.ok()) return status;
    has_user_states_ = true;
  }
  std::vector<const WireColumn*> to_lay_out;
  for (size_t i = 0; i < planned.columns.size(); ++i) {
    const WireColumn& column = planned.columns[i];
    const bool is_batched =
        programs_->signature().inputs().inputs()[planned.plan.positions[i]].batched();
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
  return absl::OkStatus();
}

int64_t SlicedRequest::rows_left() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rows_ - taken_;
}

int SlicedRequest::Take(int64_t rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t left = rows_ - taken_;
  if (left == 0) return -1;
  rows = std::clamp<int64_t>(rows, 1, left);
  int64_t added = 0;
  if (rules_->allowed_batch_sizes.empty()) {
    // As equal as can be: the last slice is what is waited for.
    const int64_t count = (left + rows - 1) / rows;
    rows = (left + count - 1) / count;
  } else {
    rows = std::min(rows + RowsToAdd(*rules_, rows), left);
    added = std::min(RowsToAdd(*rules_, rows), rows_ - rows);
  }
  Slice& slice = slices_.emplace_back();
  slice.rows = rows;
  slice.run_rows = rows + added;
  slice.skipped = std::max<int64_t>(0, taken_ + slice.run_rows - rows_);
  slice.first = taken_ - slice.skipped;
  taken_ += rows;
  return static_cast<int>(slices_.size()) - 1;
}

SlicedRequest::Slice& SlicedRequest::At(int slice) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return slices_[slice];
}

void SlicedRequest::SetRequest(Slice* slice) const {
  DecodedRequest& request = slice->request;
  request.mutable_model_spec()->signature_name = request_->model_spec().signature_name;
  *request.mutable_output_filter() = request_->output_filter();
  for (const Column* const column : once_) *request.AddColumn(column->name) = *column;
  for (const Column* const column : by_row_) {
    TakeRows(*column, slice->first, slice->run_rows, &request);
  }
  if (has_user_states_) AddZeros(kRowToUser, slice->run_rows, &request);
}

void SlicedRequest::Run(int number) {
  Slice& slice = At(number);
  SetRequest(&slice);
  slice.status = has_user_states_ ? programs_->RunOfUser(slice.request, user_states_, &slice.result)
                                  : run_(slice.request, &slice.result);
}

Status SlicedRequest::Join(std::unique_ptr<Outputs>* outputs) {
  RunResult result;
  if (absl::Status status = JoinTensors(&result); !status.ok()) return FromAbsl(status);
  result.expansion = expansion_;
  result.expansion.transcoded = slices_[0].result.expansion.transcoded;
  *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return OkStatus();
}

absl::Status SlicedRequest::JoinTensors(RunResult* result) const {
  for (const Slice& slice : slices_) {
    if (!slice.status.ok()) return slice.status;
  }
  for (const Slice& slice : slices_) {
    absl::Status status = CheckRows(slice.result.aliases, slice.result.tensors, slice.run_rows);
    if (status.ok()) continue;
    programs_->NeverJoin();
    return status;
  }
  const RunResult& first = slices_[0].result;
  result->aliases = first.aliases;
  for (size_t k = 0; k < first.tensors.size(); ++k) {
    const Tensor& like = first.tensors[k];
    Tensor& all = result->tensors.emplace_back();
    int64_t next = 0;
    for (const Slice& slice : slices_) {
      const Tensor& tensor = slice.result.tensors[k];
      if (!HaveRowsOfOneShape(tensor, like)) {
        programs_->NeverJoin();
        return absl::FailedPreconditionError(
            absl::StrCat("output \"", first.aliases[k], "\" has rows of another shape per slice"));
      }
      if (next == 0) {
        if (absl::Status status = MakeRows(like, rows_, &all); !status.ok()) return status;
      }
      for (int64_t row = 0; row < slice.rows; ++row) {
        CopyRow(tensor, slice.skipped + row, next++, &all);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
