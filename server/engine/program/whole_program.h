// The programs that run one signature: the signature itself, NAME_exact, the columnar signature on
// gathered rows, or only rows that are not in a cache.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/programs.h"
#include "server/engine/program/stage.h"
#include "server/engine/rows.h"
#include "server/states/state_cache.h"

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

// Gathers each candidate's row of every domain, and runs a signature that takes one row per
// candidate in every column.
class GatheredProgram final : public Program {
 public:
  enum class AnswerMode {
    kOneRun,          // columnar: the answer of one run with all candidates
    kRequestPerUser,  // columnar_late: the answer of one request per user
  };

  // `columnar` must have the same inputs as `domains`. Both must outlive the program.
  GatheredProgram(const Signature* columnar, const Domains* domains, AnswerMode mode)
      : columnar_(columnar), domains_(domains), mode_(mode) {}

  std::string_view name() const override { return "gathered"; }
  bool Accepts(const Batch& batch) const override {
    return batch.form == Batch::Form::kIndexed && batch.user_states == nullptr;
  }
  std::vector<int> own_lengths() const override { return columnar_->lists().own_lengths(); }
  // With kRequestPerUser, returns FAILED_PRECONDITION for an output without a row per candidate.
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  bool has_independent_rows() const { return columnar_->record().independent; }

 private:
  bool MayRunAtOnce(const Batch& batch) const;
  absl::Status RunRowsOf(const Batch& batch, absl::Span<const int64_t> candidates,
                         const std::vector<tensorflow::Tensor>& sent, RunResult* result) const;
  absl::Status GatherFeed(const Batch& batch, int input, absl::Span<const int64_t> candidates,
                          GatheredRows* gathered, tensorflow::Tensor* feed) const;
  absl::Status CheckBytes(const Batch& batch) const;

  const Signature* const columnar_;
  const Domains* const domains_;
  const AnswerMode mode_;
};

// Answers rows from a cache of earlier answers, for signatures whose rows are independent
// (docs/stages.md). Runs only the rows that are not in the cache.
class RowsProgram final : public Program {
 public:
  // Caches nothing for a signature with a one-row input, such as a query. `memory` may be null.
  // Both arguments must outlive the program.
  RowsProgram(const Signature* signature, states::StateCache* memory);

  std::string_view name() const override { return "rows"; }
  bool Accepts(const Batch& batch) const override;
  std::vector<int> own_lengths() const override { return stage_.lengths(); }
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  states::StoreStats stats() const { return stage_.stats(); }

 private:
  Stage stage_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
