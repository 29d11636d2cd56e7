// The input row_to_<domain>, which has, for each candidate, the row of the domain that it reads.
#ifndef COLCAST_SERVER_ENGINE_ROW_INDEX_H_
#define COLCAST_SERVER_ENGINE_ROW_INDEX_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// int64 [N], each in [0, rows of the domain).
constexpr std::string_view kRowTo = "row_to_";
constexpr std::string_view kRowToUser = "row_to_user";

inline std::string RowTo(std::string_view domain) { return absl::StrCat(kRowTo, domain); }

// Whether the input's name is that of an index.
inline bool IsRowIndex(std::string_view input) { return input.substr(0, kRowTo.size()) == kRowTo; }

// Whether a request has an index of any domain.
inline bool HasRowIndex(const DecodedRequest& request) {
  return std::any_of(request.begin(), request.end(),
                     [](const Column& column) { return IsRowIndex(column.name); });
}

// The index of candidates that read rows 0, 1, 2, ...
inline tensorflow::Tensor EachRow(int64_t rows) {
  tensorflow::Tensor index(tensorflow::DT_INT64, tensorflow::TensorShape({rows}));
  auto* const begin = static_cast<int64_t*>(index.data());
  std::iota(begin, begin + rows, 0);
  return index;
}

inline absl::Span<const int64_t> RowsIn(const tensorflow::Tensor& index) {
  return {static_cast<const int64_t*>(index.data()), static_cast<size_t>(index.NumElements())};
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROW_INDEX_H_
