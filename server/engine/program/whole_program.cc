#include "server/engine/program/whole_program.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

size_t LeastBytes(const Tensor& tensor) {
  const bool strings = tensor.dtype() == tensorflow::DT_STRING;
  const size_t element =
      strings ? sizeof(tensorflow::tstring) : tensorflow::DataTypeSize(tensor.dtype());
  return tensor.NumElements() * element;
}

// Keeps small tensors for the thread's next request, because allocating them costs more than
// filling them.
void DropLarge(std::vector<Tensor>* feeds) {
  constexpr size_t kMaxKeptBytes = 4096;
  for (Tensor& feed : *feeds) {
    if (LeastBytes(feed) > kMaxKeptBytes || feed.TotalBytes() > kMaxKeptBytes) feed = Tensor();
  }
}

// Sets `*feeds` to one tensor per input: the column that was sent or, if null, the default; a
// single row is repeated to `rows` if the input takes rows, unless `rows` is kAsSent. Reuses the
// tensors in `*feeds`.
absl::Status BuildFeeds(const SignatureInputs& inputs, absl::Span<const Input* const> columns,
                        int64_t rows, std::vector<Tensor>* feeds) {
  const absl::Span<const DeclaredInput> declared = inputs.inputs();
  feeds->resize(declared.size());
  for (size_t i = 0; i < declared.size(); ++i) {
    const int64_t own_rows = declared[i].batched() ? rows : SignatureInputs::kAsSent;
    absl::Status status = inputs.BuildRows(static_cast<int>(i), columns[i], own_rows, &(*feeds)[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> WholeProgram::Run(const Batch& batch, RunResult* result) {
  const absl::Status status = RunColumns(*signature_, batch, result);
  if (status.ok()) return true;
  if (batch.form != Batch::Form::kAsSent || batch.unequal_rows.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; ", batch.unequal_rows.message()));
}

absl::Status RunColumns(const Signature& signature, const Batch& batch, RunResult* result) {
  thread_local std::vector<Tensor> feeds;
  const int64_t rows =
      batch.form == Batch::Form::kAsSent ? SignatureInputs::kAsSent : batch.candidates;
  absl::Status status = BuildFeeds(signature.inputs(), batch.columns, rows, &feeds);
  if (status.ok()) status = signature.RunFeeds(feeds, *batch.outputs, result);
  DropLarge(&feeds);
  return status;
}

}  // namespace colcast::engine
