#include "server/engine/program/exact_program.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "server/engine/program/whole_program.h"

namespace colcast::engine {

std::unique_ptr<ExactProgram> ExactProgram::Create(const Signature& signature,
                                                   const std::string& name,
                                                   const Signature& exact) {
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  if (exact.output_aliases() != signature.output_aliases() ||
      exact.inputs().inputs().size() != inputs.size()) {
    return nullptr;
  }
  std::vector<Takes> takes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeclaredInput& theirs = exact.inputs().inputs()[i];
    DeclaredInput expected = inputs[i];
    const bool one_row = expected.batched() && !theirs.batched();
    if (one_row && !expected.dims.empty()) expected.dims[0] = 1;
    if (!absl::StartsWith(exact.inputs().feed_names()[i], name + "/inputs/") ||
        theirs.alias != expected.alias || theirs.dtype != expected.dtype ||
        theirs.dims != expected.dims) {
      return nullptr;
    }
    takes.push_back(one_row ? Takes::kOneRow : theirs.batched() ? Takes::kRows : Takes::kAsWhole);
  }
  if (std::find(takes.begin(), takes.end(), Takes::kOneRow) == takes.end()) return nullptr;
  return std::unique_ptr<ExactProgram>(new ExactProgram(&exact, std::move(takes)));
}

absl::StatusOr<bool> ExactProgram::Run(const Batch& batch, RunResult* result) {
  if (absl::Status status = RunColumns(*exact_, batch, result); !status.ok()) return status;
  return true;
}

bool ExactProgram::Plan(ReceivedRequest* received) const {
  return Fits(*received) && received->Plan(exact_->inputs()).ok();
}

bool ExactProgram::Fits(const ReceivedRequest& received) const {
  if (received.has_unknown || received.most_rows == 1) return false;
  int64_t rows = 1;
  for (size_t i = 0; i < received.columns.size(); ++i) {
    const Input* const input = received.columns[i];
    if (input == nullptr || takes_[i] == Takes::kAsWhole) continue;
    const absl::Span<const int64_t> dims = input->dims();
    if (dims.empty() || (takes_[i] == Takes::kOneRow && dims[0] != 1)) return false;
    rows = std::max(rows, dims[0]);
  }
  return rows > 1;
}

}  // namespace colcast::engine
