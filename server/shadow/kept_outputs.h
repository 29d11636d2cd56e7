// A copy of a version's answer, kept until it is compared.
#ifndef COLCAST_SERVER_SHADOW_KEPT_OUTPUTS_H_
#define COLCAST_SERVER_SHADOW_KEPT_OUTPUTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/predict_response.h"

namespace colcast::shadow {

// Copies the given columns.
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

}  // namespace colcast::shadow

#endif  // COLCAST_SERVER_SHADOW_KEPT_OUTPUTS_H_
