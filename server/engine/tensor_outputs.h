// The tensors of a run as Outputs: all rows, or those of one member of a batch.
#ifndef COLCAST_SERVER_ENGINE_TENSOR_OUTPUTS_H_
#define COLCAST_SERVER_ENGINE_TENSOR_OUTPUTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class TensorOutputs final : public Outputs {
 public:
  explicit TensorOutputs(RunResult result);

  // Rows [first, first + rows) of every tensor, without copying. REQUIRES that all tensors have
  // them.
  TensorOutputs(std::shared_ptr<const RunResult> result, int64_t first, int64_t rows,
                const ExpansionStats& expansion);

  const std::vector<OutputColumn>& columns() const override { return columns_; }
  const ExpansionStats& expansion() const override { return expansion_; }

 private:
  void AddColumns();

  const std::shared_ptr<const RunResult> result_;
  const ExpansionStats expansion_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<OutputColumn> columns_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_TENSOR_OUTPUTS_H_
