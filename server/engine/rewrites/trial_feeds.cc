#include "server/engine/rewrites/trial_feeds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int64_t kUnknownSize = 3;

// The rows of `values`, each row `width` elements, taken again from the first one after the last.
template <typename T>
void RepeatRows(const Tensor& values, int64_t width, Tensor* repeated) {
  const T* const from = static_cast<const T*>(values.data());
  T* const to = static_cast<T*>(repeated->data());
  const int64_t have = values.NumElements();
  for (int64_t i = 0; i < repeated->dim_size(0) * width; ++i) to[i] = from[i % have];
}

Tensor RowsOf(const Tensor& values, int64_t rows) {
  TensorShape shape = values.shape();
  shape.set_dim(0, rows);
  Tensor repeated(values.dtype(), shape);
  if (repeated.NumElements() == 0) return repeated;
  const int64_t width = shape.num_elements() / rows;
  if (values.dtype() == tensorflow::DT_STRING) {
    RepeatRows<tensorflow::tstring>(values, width, &repeated);
    return repeated;
  }
  const size_t row_bytes = repeated.TotalBytes() / rows;
  char* const to = static_cast<char*>(repeated.data());
  const char* const from = static_cast<const char*>(values.data());
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i % values.dim_size(0) * row_bytes, row_bytes, to + i * row_bytes);
  }
  return repeated;
}

// Numbers that a feature might have.
class Draws {
 public:
  int64_t Below(int64_t end) { return static_cast<int64_t>(random_() % end); }
  // As Below(), but the largest one after a Begin().
  int64_t Id(int64_t end) { return std::exchange(is_first_, false) ? end - 1 : Below(end); }
  void Begin() { is_first_ = true; }
  double Fraction() { return static_cast<double>(Below(4001) - 2000) / 1e3; }

 private:
  std::mt19937_64 random_{7};
  bool is_first_ = false;
};

// Fills a tensor of one type; whole numbers are below `end`.
using Fill = void (*)(Draws* draws, int64_t end, Tensor* tensor);

template <typename T, typename Value>
void FillWith(Tensor* tensor, const Value& value) {
  auto flat = tensor->flat<T>();
  for (int64_t i = 0; i < flat.size(); ++i) flat(i) = value();
}

template <typename T>
void FillWhole(Draws* draws, int64_t end, Tensor* tensor) {
  // What is beyond the type has the largest of it, not another number.
  const auto most = static_cast<uint64_t>(std::numeric_limits<T>::max());
  const auto fit = std::min(static_cast<uint64_t>(end), most);
  FillWith<T>(tensor, [&] { return static_cast<T>(draws->Id(static_cast<int64_t>(fit))); });
}

template <typename T>
void FillFractions(Draws* draws, int64_t, Tensor* tensor) {
  FillWith<T>(tensor, [&] { return static_cast<T>(draws->Fraction()); });
}

void FillText(Draws* draws, int64_t end, Tensor* tensor) {
  FillWith<tensorflow::tstring>(tensor, [&] { return std::to_string(draws->Id(end)); });
}

void FillBools(Draws* draws, int64_t, Tensor* tensor) {
  FillWith<bool>(tensor, [&] { return draws->Below(2) == 1; });
}

// Null for a type of which no values can be made up.
Fill FillOf(DataType dtype) {
  static constexpr std::pair<DataType, Fill> kFills[] = {
      {tensorflow::DT_STRING, FillText},
      {tensorflow::DT_BOOL, FillBools},
      {tensorflow::DT_INT8, FillWhole<int8_t>},
      {tensorflow::DT_INT16, FillWhole<int16_t>},
      {tensorflow::DT_INT32, FillWhole<int32_t>},
      {tensorflow::DT_INT64, FillWhole<int64_t>},
      {tensorflow::DT_UINT8, FillWhole<uint8_t>},
      {tensorflow::DT_UINT16, FillWhole<uint16_t>},
      {tensorflow::DT_UINT32, FillWhole<uint32_t>},
      {tensorflow::DT_UINT64, FillWhole<uint64_t>},
      {tensorflow::DT_HALF, FillFractions<Eigen::half>},
      {tensorflow::DT_BFLOAT16, FillFractions<tensorflow::bfloat16>},
      {tensorflow::DT_FLOAT, FillFractions<float>},
      {tensorflow::DT_DOUBLE, FillFractions<double>},
  };
  for (const auto& [type, fill] : kFills) {
    if (type == dtype) return fill;
  }
  return nullptr;
}

bool HasRows(const DeclaredInput& input, const Tensor& tensor, int64_t rows) {
  return input.batched() && tensor.dims() > 0 && tensor.dim_size(0) == rows;
}

// Of the domain whose rows an input has, or is an index of: 0 if that is the candidates'.
int64_t RowsOfDomain(absl::Span<const DeclaredInput> inputs, const DeclaredInput& input,
                     const DomainRows& domains) {
  std::string_view domain = input.alias;
  if (input.other_domain) {
    domain = domain.substr(0, domain.find("_state/"));
  } else if (!absl::ConsumePrefix(&domain, "row_to_") ||
             absl::c_none_of(inputs, [prefix = absl::StrCat(domain, "_state/")](const auto& other) {
               return other.other_domain && absl::StartsWith(other.alias, prefix);
             })) {
    return 0;
  }
  return domain == "user" ? domains.user : domains.others;
}

bool HasRowNumbers(const DeclaredInput& input) {
  return input.other_domain && input.dtype == tensorflow::DT_INT64 && input.dims.size() == 1 &&
         absl::EndsWith(input.alias, "_state/row");
}

// Fills a tensor with values that a feature might have.
class Generator {
 public:
  Generator(absl::Span<const DeclaredInput> inputs, int64_t values, const Ends& ends,
            const DomainRows& domains)
      : inputs_(inputs), values_(values), ends_(ends), domains_(domains) {}

  Tensor Make(const DeclaredInput& input, int64_t rows) {
    const int64_t domain_rows = RowsOfDomain(inputs_, input, domains_);
    TensorShape shape;
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const int64_t unknown = i > 0 ? kUnknownSize : input.other_domain ? domain_rows : rows;
      shape.AddDim(input.dims[i] < 0 ? unknown : input.dims[i]);
    }
    if (input.unknown_rank && input.batched()) shape.AddDim(rows);
    Tensor tensor(input.dtype, shape);
    if (HasRowNumbers(input)) {
      std::iota(tensor.flat<int64_t>().data(), tensor.flat<int64_t>().data() + tensor.NumElements(),
                0);
      return tensor;
    }
    const int64_t end = domain_rows > 0 ? domain_rows : EndOf(input);
    draws_.Begin();
    if (const Fill fill = FillOf(input.dtype); fill != nullptr) fill(&draws_, end, &tensor);
    return tensor;
  }

 private:
  int64_t EndOf(const DeclaredInput& input) const {
    if (absl::EndsWith(input.alias, "/length")) return std::min(values_, kUnknownSize + 1);
    const auto found = ends_.find(input.alias);
    return found == ends_.end() ? values_ : found->second;
  }

  const absl::Span<const DeclaredInput> inputs_;
  const int64_t values_;
  const Ends& ends_;
  const DomainRows& domains_;
  Draws draws_;
};

}  // namespace

bool CanBeMade(const DeclaredInput& input) {
  const bool is_text = input.dtype == tensorflow::DT_STRING;
  if (FillOf(input.dtype) == nullptr) return false;
  double bytes = is_text ? sizeof(tensorflow::tstring) : tensorflow::DataTypeSize(input.dtype);
  for (const int64_t dim : input.dims) bytes *= static_cast<double>(dim < 0 ? kFewTrialRows : dim);
  return bytes <= static_cast<double>(kMostTrialBytes);
}

TrialFeeds WithRows(absl::Span<const DeclaredInput> inputs, const TrialFeeds& feeds, int64_t rows) {
  TrialFeeds changed{rows, feeds.tensors};
  if (feeds.rows == 0) return feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& tensor = changed.tensors[i];
    if (HasRows(inputs[i], tensor, feeds.rows)) tensor = RowsOf(tensor, rows);
  }
  return changed;
}

TrialFeeds GenerateFeeds(absl::Span<const DeclaredInput> inputs, int64_t rows, int64_t values,
                         const Ends& ends, const DomainRows& domains) {
  Generator generator(inputs, values, ends, domains);
  TrialFeeds feeds{rows, {}};
  for (const DeclaredInput& input : inputs) feeds.tensors.push_back(generator.Make(input, rows));
  return feeds;
}

void TakeKnown(absl::Span<const DeclaredInput> inputs, const KnownRows& known, TrialFeeds* feeds) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto found = known.find(inputs[i].alias);
    if (found == known.end() || found->second.dtype() != inputs[i].dtype) continue;
    const Tensor& rows = found->second;
    const PartialTensorShape declared(absl::MakeSpan(inputs[i].dims));
    if (rows.NumElements() == 0 || inputs[i].dims.empty() ||
        !declared.IsCompatibleWith(rows.shape())) {
      continue;
    }
    feeds->tensors[i] = RowsOf(rows, feeds->tensors[i].dim_size(0));
  }
}

std::vector<TrialFeeds> WithRowsBeyond(absl::Span<const DeclaredInput> inputs,
                                       const TrialFeeds& feeds, const DomainRows& domains) {
  std::vector<TrialFeeds> beyond;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t rows = RowsOfDomain(inputs, inputs[i], domains);
    const bool is_index = rows > 0 && !inputs[i].other_domain;
    if (!is_index && !HasRowNumbers(inputs[i])) continue;
    Tensor& changed = beyond.emplace_back(feeds).tensors[i];
    changed = tensorflow::tensor::DeepCopy(changed);
    changed.flat<int64_t>()(0) = rows;
  }
  return beyond;
}

}  // namespace colcast::engine
