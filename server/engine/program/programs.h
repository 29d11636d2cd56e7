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
#include "server/engine/planned_request.h"
#include "server/engine/program/batch.h"
#include "server/engine/program/exact_program.h"
#include "server/engine/program/indexed_requests.h"
#include "server/engine/program/program_counts.h"
#include "server/engine/program/row_cache.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class Programs {
 public:
  // Beside the signature run as a whole, which is always there. Null where there is none.
  struct Others {
    std::unique_ptr<ExactProgram> exact;  // for requests that send the user once
    std::unique_ptr<StagedProgram> stages;
    std::unique_ptr<RowCache> rows;            // never beside stages
    std::unique_ptr<IndexedRequests> indexed;  // for requests with row_to_<domain>; has the stages
    // What runs requests of several users together, where the operator asked for that: the same
    // outputs within the export's tolerance, each user computed once.
    const Programs* joined = nullptr;
  };

  // `signature` must outlive the programs.
  Programs(std::string name, const Signature& signature, Others others)
      : name_(std::move(name)), signature_(&signature), others_(std::move(others)) {}

  const Signature& signature() const { return *signature_; }
  const Programs* joined() const { return others_.joined; }
  bool has_stages() const { return others_.stages != nullptr && others_.indexed != nullptr; }
  bool has_row_cache() const { return others_.rows != nullptr; }

  // Answers a request. RESOURCE_EXHAUSTED beyond a limit, INVALID_ARGUMENT for what is wrong with
  // it, as Signature and IndexedRequests have it.
  absl::Status Run(const DecodedRequest& request, RunResult* result) const;

  // Reads a received request as rows of every domain, to be part of a batch. Errors as Run()'s.
  absl::Status Plan(PlannedRequest* received, Batch* batch) const;

  // Runs rows of several requests, or of a slice of one. Errors as the request's; where its users'
  // states are given, none but a stage's.
  absl::Status Run(const Batch& batch, const std::vector<int>& outputs, RunResult* result) const;

  // The domain of an input; negative where its rows are the candidates'.
  int DomainOf(size_t input) const {
    return has_users() ? others_.indexed->domain_of(input) : IndexedRequests::kCandidates;
  }

  // Whether lists on whose greatest length results depend have one in each domain.
  bool HaveOneLength(const Batch& batch) const {
    return !has_users() || others_.indexed->HaveOneLength(batch);
  }

  // As Model::Check() has it.
  absl::Status Check(const DecodedRequest& request) const;

  // As Model::FillStates() has it.
  bool FillStates(const DecodedRequest& rows) const;

  // Whether some of its columns are the user's alone, and requests may have several users.
  bool has_users() const { return others_.indexed != nullptr && !signature_->takes().rows; }

  // Whether each of several users in one request is computed once, and all rows together then.
  bool computes_users_once() const;

  // Whether requests may run together, and whether one may be split: where the record says that
  // rows do not depend on each other or, if there is none, where the rules ask for it. `outputs`
  // are those asked for, positions in the sorted aliases.
  bool CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const;
  bool CanBeSplit(const BatchRules& rules, const std::vector<int>& outputs) const;

  // To be called where the answer of a joined or split run has other than its rows.
  void NeverJoin() const { never_join_ = true; }

  // Whether requests with an index may be joined and split as those without: by stages, whose
  // states are gathered and not columns.
  bool shares_indexed_runs() const { return has_users() && has_stages(); }

  // The states of a batch's users, for slices of it. Fails where the stage does. REQUIRES
  // has_users() and has_stages().
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states) const {
    return others_.indexed->UserStates(batch, states);
  }

  std::vector<ProgramStats> counts() const { return counts_.stats(name_); }
  std::vector<StoreStats> stores() const;

 private:
  absl::Status RunReceived(PlannedRequest* received, RunResult* result) const;
  absl::Status RunSignature(const Signature& signature, Program program,
                            const PlannedRequest& planned, RunResult* result) const;
  bool RunWithStates(const PlannedRequest& planned, RunResult* result) const;
  bool MayShareRuns(const BatchRules& rules) const;

  absl::Status Count(Program program, absl::Status status) const {
    counts_.Count(name_, program, status);
    return status;
  }

  const std::string name_;
  const Signature* const signature_;
  const Others others_;
  mutable ProgramCounts counts_;
  mutable std::atomic<bool> never_join_ = false;  // it was tried
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
