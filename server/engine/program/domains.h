// The domains of a signature's columns, and how requests say which row of each a candidate reads:
// the extra input row_to_<domain> has that row's number for each candidate.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_DOMAINS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_DOMAINS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/program/batch.h"
#include "server/engine/signature.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct DomainColumns {
  std::string name;
  std::set<std::string> columns;     // none: no request has its index
  const Signature* stage = nullptr;  // computes its states; null: it has none
};

class Domains {
 public:
  static constexpr int kCandidates = -1;

  // `domains`, those with stages first, say whose columns are whose; others are the candidates'.
  // `columnar` has the same inputs as `declared` but takes any row of every
  // domain for each candidate. Requests have no index where it is null, has other inputs, or an
  // input row_to_<domain> of its own, or where the user has no columns. It must outlive the
  // domains.
  Domains(const tensorflow::SignatureDef& declared, std::vector<DomainColumns> domains,
          const Signature* columnar, const Options& options);

  // None: all rows are the candidates'.
  Domains() : Domains({}, {}, nullptr, {}) {}

  // The domain of an input of the signature; kCandidates where it has none.
  int domain_of(size_t input) const {
    return input < domain_of_.size() ? domain_of_[input] : kCandidates;
  }

  // Whether requests may have an index.
  bool take_index() const { return !index_names_.empty(); }

  // Whether a request, as the signature received it, has one.
  bool HasIndex(const ReceivedRequest& received) const { return IndexedIn(received) != 0; }

  // Reads a request with an index. INVALID_ARGUMENT as the expansion rule has it, for each domain
  // and the candidates apart, and for an index that names no row, with row and value.
  // RESOURCE_EXHAUSTED beyond the limits. The batch refers to the request's columns.
  absl::Status Plan(const ReceivedRequest& received, Batch* batch) const;

  // Sets the rows of a batch without an index by its columns and candidates: one user, an item for
  // each candidate, and of other domains with a stage one row or as many.
  void SetRows(Batch* batch) const;

  // Whether lists on whose greatest length results depend would have the same in a request per
  // user.
  bool HaveOneLength(const Batch& batch) const;

  // What came for an input or its default, with the rows of its domain where that has an index.
  absl::Status BuildFeed(const Batch& batch, int input, tensorflow::Tensor* feed) const;

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

  bool MayTakeIndex() const;
  const Form* Find(uint64_t indexed) const;
  absl::StatusOr<const Form*> FormOf(uint64_t indexed) const;
  absl::Status MakeForm(uint64_t indexed, Form* form) const;
  uint64_t IndexedIn(const ReceivedRequest& received) const;
  absl::Status ReadIndex(const Form& form, size_t domain, const Side& candidates,
                         Batch* batch) const;

  const tensorflow::SignatureDef declared_;
  const SignatureInputs inputs_;  // as declared, without limits
  const std::vector<DomainColumns> domains_;
  const Signature* const columnar_;
  const Options options_;
  std::vector<int> domain_of_;              // by the signature's input
  std::vector<std::vector<int>> of_stage_;  // by domain: the inputs that its stage reads
  std::vector<std::string> index_names_;    // by domain; empty where it has no columns
  mutable std::mutex mutex_;                // of whoever adds a form
  mutable std::deque<Form> made_;
  mutable std::atomic<const Form*> forms_ = nullptr;  // the last one made; they stay
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_DOMAINS_H_
