// The signature NAME_exact that the exporter puts beside NAME: equal to the last bit, with the
// user's part of the graph at one row (docs/late.md).
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
  // Null unless `exact`, called `name`, is one of `signature`: the same inputs, outputs and dtypes.
  // It must outlive the program.
  static std::unique_ptr<ExactProgram> Create(const Signature& signature, const std::string& name,
                                              const Signature& exact);

  std::string_view name() const override { return "exact"; }
  bool Accepts(const Batch& batch) const override { return batch.form == Batch::Form::kOneUser; }
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  bool has_independent_rows() const { return exact_->record().independent; }

  // Plans a received request that sends once what this takes with one row. False if it sends
  // anything else, or is wrong.
  bool Plan(ReceivedRequest* received) const;

 private:
  // What it takes for an input.
  enum class Takes : uint8_t {
    kAsWhole,  // what the signature does, which is not batched
    kOneRow,
    kRows,
  };

  bool Fits(const ReceivedRequest& received) const;

  ExactProgram(const Signature* exact, std::vector<Takes> takes)
      : exact_(exact), takes_(std::move(takes)) {}

  const Signature* const exact_;
  const std::vector<Takes> takes_;  // by input
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_
