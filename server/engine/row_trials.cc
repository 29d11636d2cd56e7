#include "server/engine/row_trials.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/algorithm/container.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr size_t kMaxResults = 1000;  // clients choose which inputs have one row

// Zeros, or strings that read as zero, with `rows` rows if the input is batched and 1 for other
// unknown dimensions. Nothing for an input of unknown dtype.
std::optional<Tensor> MadeUp(const DeclaredInput& input, int64_t rows) {
  const bool is_string = input.dtype == tensorflow::DT_STRING;
  if (!is_string && !tensorflow::DataTypeCanUseMemcpy(input.dtype)) return std::nullopt;
  tensorflow::TensorShape shape;
  for (const int64_t dim : input.dims) shape.AddDim(dim < 0 ? 1 : dim);
  if (input.batched() && shape.dims() > 0) shape.set_dim(0, rows);
  Tensor tensor(input.dtype, shape);
  if (is_string) {
    tensor.flat<tensorflow::tstring>().setConstant("0");
  } else if (tensor.TotalBytes() > 0) {
    std::memset(tensor.data(), 0, tensor.TotalBytes());
  }
  return tensor;
}

bool Answers(const Signature& signature, const std::vector<int>& one_row,
             const std::vector<int>& outputs) {
  std::vector<Tensor> feeds;
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool has_one = absl::c_linear_search(one_row, static_cast<int>(i));
    std::optional<Tensor> feed = MadeUp(inputs[i], has_one ? 1 : 2);
    if (!feed.has_value()) return false;
    feeds.push_back(*std::move(feed));
  }
  RunResult result;
  return signature.RunFeeds(feeds, outputs, &result).ok();
}

}  // namespace

bool RowTrials::NeedRepeated(const Signature& signature, const std::vector<int>& one_row,
                             const std::vector<int>& outputs) const {
  const Case tried(one_row, outputs);
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = results_.find(tried);
    if (found != results_.end()) return found->second;
  }
  const bool need =
      !Answers(signature, one_row, outputs) && Answers(signature, /*one_row=*/{}, outputs);
  const absl::MutexLock lock(&mutex_);
  if (results_.size() < kMaxResults) results_.emplace(tried, need);
  return need;
}

}  // namespace colcast::engine
