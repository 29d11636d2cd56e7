// Gathers each candidate's row of every domain, and runs a signature that takes one row per
// candidate in every column.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_PROGRAM_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/programs.h"
#include "server/engine/rows.h"

namespace colcast::engine {

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

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_PROGRAM_H_
