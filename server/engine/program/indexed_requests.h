// Requests whose candidates say which row of a domain they read: its columns have a row for each
// user, shop and so on, and the extra input row_to_<domain> has that row's number for each
// candidate. And batches of several requests, which have an index of their users.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_INDEXED_REQUESTS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_INDEXED_REQUESTS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/planned_request.h"
#include "server/engine/program/batch.h"
#include "server/engine/program/program_counts.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/signature.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct DomainColumns {
  std::string name;
  std::set<std::string> columns;  // none: no request has its index
};

class IndexedRequests {
 public:
  // What a request is answered with.
  enum class Gives {
    kOneRun,         // columnar: what a run gives that has each domain's row beside every candidate
    kRequestPerUser  // columnar_late: what a request per user gives
  };

  // Requests to a signature, `declared`. They are run by `stages` or, where that is null or fails,
  // by columnar, `signature`, which takes any row of every domain for each candidate: with the rows
  // gathered, in one run, but for kRequestPerUser only where that gives the same.
  // `domains`, those of the stages first and in their order, say whose columns are whose; others
  // are the candidates'. Null if the user has no columns, or the signature has an input
  // row_to_<domain> of its own, or inputs other than those of `signature`.
  static std::unique_ptr<IndexedRequests> Create(const tensorflow::SignatureDef& declared,
                                                 const Signature& signature, Gives gives,
                                                 StagedProgram* stages,
                                                 std::vector<DomainColumns> domains,
                                                 const Options& options);

  // Whether requests to the late signature, with a user each, may run as one batch.
  bool CanBeJoined(const BatchRules& rules) const;

  // Whether a request, as the signature received it, is one of these: it has an index of a domain.
  bool Take(const PlannedRequest& received) const;

  // Reads a request that it takes. INVALID_ARGUMENT as the expansion rule has it, for each domain
  // and the candidates apart, and for an index that names no row, with row and value.
  // RESOURCE_EXHAUSTED beyond the limits. The batch refers to the request's columns.
  absl::Status Plan(const PlannedRequest& received, Batch* batch) const;

  // The same for a request without an index that the signature has planned.
  void SetBatch(const PlannedRequest& planned, Batch* batch) const;

  // The domain of an input of the signature; kCandidates where it has none.
  static constexpr int kCandidates = -1;
  int domain_of(size_t input) const { return domain_of_[input]; }

  // Sets `*states` to those of the batch's users, found or computed. REQUIRES stages.
  absl::Status UserStates(const Batch& batch, std::vector<tensorflow::Tensor>* states) const {
    return stages_->UserStates(batch, states);
  }

  // By stages and nothing else. Fails where a stage does. REQUIRES stages.
  absl::Status RunStages(const Batch& batch, const std::vector<int>& outputs,
                         RunResult* result) const;

  // Where what ran is counted, and the signature's name.
  struct Counted {
    ProgramCounts* counts;
    const std::string* signature;
  };

  // Of kRequestPerUser, FAILED_PRECONDITION for an output without a row for each candidate.
  absl::Status Run(const Batch& batch, const std::vector<int>& outputs, const Counted& counted,
                   RunResult* result) const;

  // Whether lists on whose greatest length results depend would have the same in a request per
  // user.
  bool HaveOneLength(const Batch& batch) const;

  // Implementation details follow.
 private:
  // How requests with the indices of some domains are read: those domains and all else apart.
  struct Form {
    uint64_t indexed = 0;                     // a bit for each domain
    std::vector<SignatureInputs> domains;     // by domain; without inputs where it has no index
    std::vector<SignatureInputs> candidates;  // one: all other columns, and the indices
    const Form* next = nullptr;
    bool has(size_t domain) const { return (indexed >> domain & 1) != 0; }
  };

  // What came for one side of a form.
  struct Side {
    std::vector<ReceivedInput> received;
    SignatureInputs::Scratch plan;
    absl::Status Plan(const SignatureInputs& inputs) {
      inputs.FindAll(received, &plan.positions);
      return inputs.Plan(received, plan.positions, &plan);
    }
  };

  IndexedRequests(const tensorflow::SignatureDef& declared, SignatureInputs inputs,
                  const Signature& signature, Gives gives, StagedProgram* stages,
                  std::vector<DomainColumns> domains, const Options& options);

  const Form* Find(uint64_t indexed) const;
  absl::StatusOr<const Form*> FormOf(uint64_t indexed) const;
  absl::Status MakeForm(uint64_t indexed, Form* form) const;
  uint64_t IndexedIn(const PlannedRequest& received) const;
  absl::Status ReadIndex(const Form& form, size_t domain, const Side& candidates,
                         Batch* batch) const;
  void SetRows(Batch* batch) const;
  absl::Status RunGathered(const Batch& batch, bool in_one, const std::vector<int>& outputs,
                           RunResult* result) const;
  absl::Status BuildFeed(const Batch& batch, int input, tensorflow::Tensor* feed) const;
  absl::Status GatherFeed(const Batch& batch, int input, absl::Span<const int64_t> candidates,
                          double* gathered, tensorflow::Tensor* feed) const;
  // Counts the bytes of the rows in `*gathered`, of one run, before they are taken.
  absl::Status Gather(absl::Span<const int64_t> rows, double* gathered,
                      tensorflow::Tensor* feed) const;
  absl::Status CheckGathered(const Batch& batch) const;
  absl::Status TooMuch(int64_t candidates, double bytes, const char* than) const;

  const tensorflow::SignatureDef declared_;
  const SignatureInputs inputs_;  // as declared; in the order of those of signature_
  const Signature* const signature_;
  const Gives gives_;
  StagedProgram* const stages_;
  const std::vector<DomainColumns> domains_;
  const Options options_;
  std::vector<std::string> index_names_;  // by domain; empty where it has no columns
  std::vector<int> domain_of_;            // by the signature's input
  mutable std::mutex mutex_;              // of whoever adds a form
  mutable std::deque<Form> made_;
  mutable std::atomic<const Form*> forms_ = nullptr;  // the last one made; they stay
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_INDEXED_REQUESTS_H_
