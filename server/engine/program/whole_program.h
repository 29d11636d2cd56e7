// Runs the signature itself, with one-row columns repeated for every candidate unless the batch is
// to run as sent.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_

#include <string_view>
#include <vector>

#include "server/engine/program/program.h"

namespace colcast::engine {

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

absl::Status RunColumns(const Signature& signature, const Batch& batch, RunResult* result);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
