// The programs that a model has for one signature. The only place that chooses a program for a
// request and counts the choice (docs/domains.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/engine.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/exact_program.h"
#include "server/engine/program/gathered_program.h"
#include "server/engine/program/program.h"
#include "server/engine/program/rows_program.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/program/whole_program.h"
#include "server/engine/signature.h"

namespace colcast::engine {

// Counts the programs that answered a signature's requests, and those that failed before another
// one answered. All methods may be called from any thread.
class ProgramCounts {
 public:
  // `programs` are their names, which must be string literals.
  ProgramCounts(std::string signature, const std::vector<std::string_view>& programs);

  // Counts a run of a program, given by position. Logs each program's first failure, with the
  // signature's name.
  void Count(size_t program, const absl::Status& status);

  // One count for each program and outcome that has occurred.
  std::vector<ProgramStats> stats() const;

 private:
  struct Counts {
    explicit Counts(std::string_view name) : name(name) {}
    const std::string_view name;
    std::array<std::atomic<int64_t>, 2> by_outcome{};
  };

  const std::string signature_;
  std::deque<Counts> programs_;
};

class Programs {
 public:
  // The programs besides `whole`, which always exists. Null if missing, except `domains`.
  struct Others {
    std::unique_ptr<Domains> domains = std::make_unique<Domains>();
    std::unique_ptr<StagedProgram> stages;
    std::unique_ptr<RowsProgram> rows;    // never together with stages
    std::unique_ptr<ExactProgram> exact;  // never together with stages or rows
    std::unique_ptr<GatheredProgram> gathered;
  };

  // `signature` must outlive the programs.
  Programs(std::string name, const Signature& signature, Others others);

  const Signature& signature() const { return *signature_; }
  const Domains& domains() const { return *others_.domains; }
  StagedProgram* stages() const { return others_.stages.get(); }

  // Reads a request and reports all its errors, except those in values. Returns RESOURCE_EXHAUSTED
  // beyond a limit, INVALID_ARGUMENT from Signature and Domains. The plan refers to the request.
  absl::Status Plan(const DecodedRequest& request, RequestPlan* plan) const;

  // The properties of a planned request that a scheduler needs.
  RequestProfile ProfileOf(const RequestPlan& plan, const BatchRules& rules) const;

  // Runs the first program that accepts the batch and gains by it. If a program fails, the next one
  // runs; returns the error of the last one.
  absl::Status Run(const Batch& batch, RunResult* result) const;

  // Whether requests for these outputs (positions in the sorted aliases) may run together: if the
  // record says that rows are independent or, without a record, if the rules ask for it.
  bool CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const;

  // Positions of the lengths of lists whose longest one affects some program's results.
  const std::vector<int>& own_lengths() const { return own_lengths_; }

  // Those that must be equal in requests that run together. With stages, few must: each stage
  // computes rows of one length at a time.
  const std::vector<int>& joined_lengths() const { return joined_lengths_; }

  // Call if a joined or split run returned a wrong number of rows.
  void NeverJoin() const { never_join_ = true; }

  // Counts of all programs, and statistics of all stores.
  std::vector<ProgramStats> counts() const { return counts_.stats(); }
  std::vector<StoreStats> stores() const;

 private:
  // Whether some columns are the user's, and requests may have several users.
  bool has_users() const { return domains().take_index() && !signature_->traits().takes_rows; }
  absl::Status PlanRows(ReceivedRequest* received, Batch* batch) const;
  absl::Status PlanUnrecorded(ReceivedRequest* received, Batch* batch) const;
  bool MayShareRuns(const BatchRules& rules) const;
  bool CanBeSplit(const BatchRules& rules, const std::vector<int>& outputs) const;

  const std::string name_;
  const Signature* const signature_;
  const Others others_;
  mutable WholeProgram whole_;
  const std::vector<Program*> programs_;  // in the order in which they are tried
  const std::vector<int> own_lengths_;
  const std::vector<int> joined_lengths_;
  mutable ProgramCounts counts_;
  mutable std::atomic<bool> never_join_ = false;  // a joined run returned a wrong number of rows
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
