// Compares two answers to one request, with the measures of `colcast compare` (docs/compare.md).
#ifndef COLCAST_SERVER_SHADOW_DRIFT_H_
#define COLCAST_SERVER_SHADOW_DRIFT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/predict_response.h"

namespace colcast::shadow {

// A copy of a version's answer, kept until it is compared.
class KeptOutputs {
 public:
  KeptOutputs() = default;
  explicit KeptOutputs(const std::vector<OutputColumn>& outputs);
  KeptOutputs(KeptOutputs&&) = default;
  KeptOutputs& operator=(KeptOutputs&&) = default;

  const std::vector<OutputColumn>& columns() const { return columns_; }

 private:
  struct Kept {
    std::string name;
    std::vector<int64_t> dims;
    std::string bytes;
    std::vector<std::string> strings;
  };

  std::vector<std::unique_ptr<Kept>> kept_;
  std::vector<OutputColumn> columns_;  // point into the copied values
};

// The number of elements: the product of the dimensions.
int64_t CountOf(const OutputColumn& output);

// An output that both answers have with the same dtype and shape.
struct OutputDrift {
  std::string_view name;
  // The largest absolute difference between values. NaN equals NaN. A number and NaN, or different
  // values of a dtype that is not numeric, differ infinitely.
  double difference = 0;
  // Whether the ten highest scores belong to the same candidates, in any order; NaN is lowest, and
  // of equal scores the first is higher. Only for more than ten candidates with one number each.
  std::optional<bool> same_top10;
};

struct Drift {
  std::vector<OutputDrift> outputs;
  bool other_form = false;  // an output is missing, or has another dtype or shape
};

// The names point into `live`.
Drift Compare(const std::vector<OutputColumn>& live, const std::vector<OutputColumn>& shadow);

}  // namespace colcast::shadow

#endif  // COLCAST_SERVER_SHADOW_DRIFT_H_
