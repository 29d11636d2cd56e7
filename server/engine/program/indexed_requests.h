// Requests whose candidates say which row of a domain they read: its columns have a row for each
// user, shop and so on, and the extra input row_to_<domain> has that row's number for each
// candidate.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_INDEXED_REQUESTS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_INDEXED_REQUESTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/program/program_counts.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/signature.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct DomainColumns {
  std::string name;
  std::set<std::string> columns;
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
  // `domains`, the user's first, say whose columns are whose; others are the candidates'. Null if
  // the user has no columns, or the signature has an input row_to_<domain> of its own, or inputs
  // other than those of `signature`.
  static std::unique_ptr<IndexedRequests> Create(const tensorflow::SignatureDef& declared,
                                                 const Signature& signature, Gives gives,
                                                 StagedProgram* stages,
                                                 std::vector<DomainColumns> domains,
                                                 const Options& options);

  // Whether requests to the late signature, with a user each, may be joined to one to this.
  bool CanBeJoined(const BatchRules& rules) const;

  // Whether a request is one of these: it has an index of a domain.
  bool Take(absl::Span<const ReceivedInput> received) const;

  // Sets `*states` to those of the users in `received`, found or computed. For RunOfUser().
  absl::Status UserStates(const PlannedRequest& received,
                          std::vector<tensorflow::Tensor>* states) const;

  // Some candidates of one user whose states are known: `received` has all but the user's columns.
  // Fails where a stage does, and without stages. Otherwise as Run().
  absl::Status RunOfUser(const PlannedRequest& received,
                         const std::vector<tensorflow::Tensor>& user_states,
                         RunResult* result) const;

  // Where what ran is counted, and the signature's name.
  struct Counted {
    ProgramCounts* counts;
    const std::string* signature;
  };

  // INVALID_ARGUMENT as the expansion rule has it, for each domain and the candidates apart, and
  // for an index that names no row, with row and value. RESOURCE_EXHAUSTED beyond the limits.
  // Of kRequestPerUser, FAILED_PRECONDITION for an output without a row for each candidate.
  // `received`: as a signature received it.
  absl::Status Run(const PlannedRequest& received, const Counted& counted, RunResult* result) const;

  // Implementation details follow.
 private:
  static constexpr int kCandidates = -1;

  // Where one of the signature's inputs is.
  struct Place {
    int side;   // the domain's number, or kCandidates
    int input;  // of that side
  };

  // How requests with the indices of some domains are read: those domains and all else apart.
  struct Form {
    std::vector<bool> indexed;                // by domain
    std::vector<SignatureInputs> domains;     // by domain; without inputs where it has no index
    std::vector<SignatureInputs> candidates;  // one: all other columns, and the indices
    std::vector<Place> places;                // by the signature's input
  };

  // What came for one side of a form.
  struct Side {
    std::vector<ReceivedInput> received;
    SignatureInputs::Scratch plan;
  };
  struct Sides;

  IndexedRequests(const tensorflow::SignatureDef& declared, const Signature& signature, Gives gives,
                  StagedProgram* stages, std::vector<DomainColumns> domains,
                  const Options& options);

  int DomainOf(const std::string& input) const;
  absl::StatusOr<const Form*> FormOf(absl::Span<const ReceivedInput> received) const;
  absl::Status MakeForm(std::vector<bool> indexed, Form* form) const;
  absl::Status Plan(const Form& form, absl::Span<const ReceivedInput> received, Sides* sides) const;
  absl::Status PlanDomain(const Form& form, size_t domain, Sides* sides) const;
  absl::Status ReadIndex(const Form& form, size_t domain, Sides* sides) const;
  const ColumnSource* SourceOf(const Form& form, const Sides& sides, int input) const;
  StagedProgram::Batch BatchOf(const Form& form, const Sides& sides) const;
  absl::Status RunStages(const Form& form, const Sides& sides, const StagedProgram::Batch& batch,
                         const std::vector<int>& outputs, RunResult* result) const;
  absl::Status RunGathered(const Form& form, const Sides& sides, bool in_one,
                           const std::vector<int>& outputs, RunResult* result) const;
  absl::Status BuildFeed(const Form& form, const Sides& sides, int input,
                         tensorflow::Tensor* feed) const;
  absl::Status GatherFeed(const Form& form, const Sides& sides, int input,
                          absl::Span<const int64_t> candidates, tensorflow::Tensor* feed) const;
  absl::Status CheckGathered(const Form& form, const Sides& sides) const;
  bool HaveOneLength(const Form& form, const Sides& sides) const;

  const tensorflow::SignatureDef declared_;
  const Signature* const signature_;
  const Gives gives_;
  StagedProgram* const stages_;
  const std::vector<DomainColumns> domains_;
  const Options options_;
  std::vector<std::string> index_names_;  // by domain
  mutable std::mutex mutex_;              // of the map; forms stay where they are
  mutable std::map<std::vector<bool>, Form> forms_;
  Form* of_users_ = nullptr;  // of these, that of the user alone
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_INDEXED_REQUESTS_H_
