// The programs that each run one signature: the requested one, NAME_exact, the columnar signature
// on gathered rows, or the requested one on uncached rows only.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/engine/program/domains.h"
#include "server/engine/program/programs.h"
#include "server/states/state_cache.h"

namespace colcast::engine {

// Arguments of all functions must outlive the programs.

// Runs the signature itself, with one-row columns repeated for every candidate unless the batch's
// form is kAsSent.
std::unique_ptr<Program> MakeWholeProgram(const Signature* signature);

// Runs the signature NAME_exact, which the exporter writes beside NAME: the results are
// bit-identical, but the user part of the graph is computed on one row (docs/late.md).
class ExactProgram final : public Program {
 public:
  // Returns null unless `exact`, named `name`, has the inputs and outputs of `signature`, takes one
  // row of some inputs, and is fed at the nodes that the exporter names.
  static std::unique_ptr<ExactProgram> Create(const Signature& signature, const std::string& name,
                                              const Signature& exact);

  std::string_view name() const override { return "exact"; }
  bool Accepts(const Batch& batch) const override { return batch.form == Batch::Form::kOneUser; }
  std::vector<int> own_lengths() const override { return exact_->lists().own_lengths(); }
  bool has_independent_rows() const override { return exact_->record().independent; }
  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override;

  // Plans a request that sends one row for every column that NAME_exact takes as one row. Returns
  // false for all other requests and for invalid ones.
  bool Plan(ReceivedRequest* received) const;

 private:
  ExactProgram(const Signature* exact, std::vector<size_t> once)
      : exact_(exact), once_(std::move(once)) {}

  const Signature* const exact_;
  const std::vector<size_t> once_;  // the inputs that NAME_exact takes as one row
};

enum class AnswerMode {
  kOneRun,          // columnar: the same answer as one run with all candidates
  kRequestPerUser,  // columnar_late: the same answers as one request per user
};

// Gathers each candidate's row of every domain, and runs a signature that takes one row per
// candidate in every column. `columnar` must have the same inputs as `domains`. With
// kRequestPerUser, Run() returns FAILED_PRECONDITION for an output without a row per candidate.
std::unique_ptr<Program> MakeGatheredProgram(const Signature* columnar, const Domains* domains,
                                             AnswerMode mode);

// Answers rows from a cache of earlier answers, for signatures whose rows are independent
// (docs/stages.md). Runs only the rows that are not in the cache. Caches nothing for a signature
// with a one-row input, such as a query. `memory` may be null.
std::unique_ptr<Program> MakeRowsProgram(const Signature* signature, states::StateCache* memory);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_WHOLE_PROGRAM_H_
