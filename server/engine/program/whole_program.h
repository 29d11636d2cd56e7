// The programs that run one signature on a request's columns: the signature itself, or NAME_exact.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/engine/program/programs.h"

namespace colcast::engine {

// Runs the signature itself, with one-row columns repeated for every candidate unless the batch is
// to run as sent.
class WholeProgram final : public Program {
 public:
  // `signature` must outlive the program.
  explicit WholeProgram(const Signature* signature) : signature_(signature) {}

  std::string_view name() const override { return "whole"; }
  bool Accepts(const Batch& batch) const override {
    return (batch.form == Batch::Form::kRows && batch.user_states == nullptr) ||
           batch.form == Batch::Form::kAsSent;
  }
  std::vector<int> own_lengths() const override { return signature_->lists().own_lengths(); }
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

 private:
  const Signature* const signature_;
};

// Runs the signature NAME_exact, which the exporter writes beside NAME: the results are
// bit-identical, but the user part of the graph is computed on one row (docs/late.md).
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

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
