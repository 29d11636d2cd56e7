// What answers requests to one signature: the programs that a model has for it, and which of them
// runs. The one place that chooses, and that counts what was chosen (docs/domains.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/engine.h"
#include "server/engine/program/batch.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/exact_program.h"
#include "server/engine/program/gathered_program.h"
#include "server/engine/program/program.h"
#include "server/engine/program/program_counts.h"
#include "server/engine/program/request_plan.h"
#include "server/engine/program/rows_program.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/program/whole_program.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class Programs {
 public:
  // Beside the signature run as a whole, which is always there. Null where there is none, but for
  // the domains.
  struct Others {
    std::unique_ptr<Domains> domains = std::make_unique<Domains>();  // of its columns
    std::unique_ptr<StagedProgram> stages;
    std::unique_ptr<RowsProgram> rows;    // never beside stages
    std::unique_ptr<ExactProgram> exact;  // never beside stages or rows
    std::unique_ptr<GatheredProgram> gathered;
    // What runs requests of several users together, where the operator asked for that: the same
    // outputs within the export's tolerance, each user computed once.
    const Programs* batched_by = nullptr;
  };

  // `signature` must outlive the programs.
  Programs(std::string name, const Signature& signature, Others others);

  const Signature& signature() const { return *signature_; }
  const Domains& domains() const { return *others_.domains; }
  StagedProgram* stages() const { return others_.stages.get(); }
  const Programs* batched_by() const { return others_.batched_by; }

  // Reads a request: all that is wrong with it but for its values is found here.
  // RESOURCE_EXHAUSTED beyond a limit, INVALID_ARGUMENT as Signature and Domains have it. The plan
  // refers to the request.
  absl::Status Plan(const DecodedRequest& request, RequestPlan* plan) const;

  // What a scheduler may know of a planned request.
  RequestProfile ProfileOf(const RequestPlan& plan, const BatchRules& rules) const;

  // Runs the first program that accepts the batch and has less to do than the next; where one
  // fails, the next. The last one's error is the answer.
  absl::Status Run(const Batch& batch, RunResult* result) const;

  // Whether requests that ask for these outputs, positions in the sorted aliases, may run together:
  // where the record says that rows do not depend on each other or, if there is none, where the
  // rules ask for it.
  bool CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const;

  // To be called where the answer of a joined or split run has other than its rows.
  void NeverJoin() const { never_join_ = true; }

  // Counts of every program that ran, and of every store.
  std::vector<ProgramStats> counts() const { return counts_.stats(); }
  std::vector<StoreStats> stores() const;

 private:
  // Whether some of its columns are the user's alone, and requests may have several users.
  bool has_users() const { return domains().take_index() && !signature_->takes().rows; }
  absl::Status PlanRows(ReceivedRequest* received, Batch* batch) const;
  bool MayShareRuns(const BatchRules& rules) const;
  bool CanBeSplit(const BatchRules& rules, const std::vector<int>& outputs) const;

  const std::string name_;
  const Signature* const signature_;
  const Others others_;
  mutable WholeProgram whole_;
  const std::vector<Program*> programs_;  // in the order in which they are asked
  mutable ProgramCounts counts_;
  mutable std::atomic<bool> never_join_ = false;  // it was tried
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
