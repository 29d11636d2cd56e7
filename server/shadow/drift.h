// How far two answers to one request are apart, in the words of `colcast compare`
// (docs/compare.md).
#ifndef COLCAST_SERVER_SHADOW_DRIFT_H_
#define COLCAST_SERVER_SHADOW_DRIFT_H_

#include <optional>
#include <string_view>
#include <vector>

#include "server/wire/predict_response.h"

namespace colcast::shadow {

// One output that both answers have, with the same dtype and shape.
struct OutputDrift {
  std::string_view name;
  // The largest absolute difference of any value. NaN equals NaN; a number against NaN, and another
  // string, is infinite. So is another value of a dtype that is no number.
  double difference = 0;
  // Whether the ten highest scores are the same candidates', in any order; NaN is lowest, of equal
  // scores the first is the higher one. Of more than ten candidates with one number each.
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
