// Runs the signature NAME_exact, which the exporter writes beside NAME: the results are
// bit-identical, but the user part of the graph is computed on one row (docs/late.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine/program/program.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class ExactProgram final : public Program {
 public:
  // Returns null unless `exact`, named `name`, has the inputs, outputs and dtypes of `signature`.
  // `exact` must outlive the program.
  static std::unique_ptr<ExactProgram> Create(const Signature& signature, const std::string& name,
                                              const Signature& exact);

  std::string_view name() const override { return "exact"; }
  bool Accepts(const Batch& batch) const override { return batch.form == Batch::Form::kOneUser; }
  std::vector<int> own_lengths() const override { return exact_->lists().own_lengths(); }
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  bool has_independent_rows() const { return exact_->record().independent; }

  // Plans a request that sends one row for every column that NAME_exact takes as one row. Returns
  // false for all other requests and for invalid ones.
  bool Plan(ReceivedRequest* received) const;

 private:
  // How the exact signature takes an input.
  enum class Takes : uint8_t {
    kAsWhole,  // as the original signature takes it: the input has no rows
    kOneRow,
    kRows,
  };

  bool Fits(const ReceivedRequest& received) const;

  ExactProgram(const Signature* exact, std::vector<Takes> takes)
      : exact_(exact), takes_(std::move(takes)) {}

  const Signature* const exact_;
  const std::vector<Takes> takes_;  // per input
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_
