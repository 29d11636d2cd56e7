// The domains of a signature's columns. A request's extra input row_to_<domain> holds the row of
// that domain that each candidate reads.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_DOMAINS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_DOMAINS_H_

#include <cstdint>
#include <map>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/program/programs.h"
#include "server/engine/signature.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct DomainColumns {
  std::string name;
  std::set<std::string> columns;  // if empty, requests cannot have an index of this domain
  // Computes the domain's states; null if the domain has no stage.
  const Signature* stage = nullptr;
};

class Domains {
 public:
  static constexpr int kCandidates = -1;

  // `domains`, those with stages first, list their columns; all other columns belong to the
  // candidates. `columnar`, which must outlive this object, has the same inputs as `declared` but
  // takes several rows of every domain. Requests cannot have an index if `columnar` is null or has
  // other inputs, if an input is itself named row_to_<domain>, or if the user has no columns.
  Domains(const tensorflow::SignatureDef& declared, std::vector<DomainColumns> domains,
          const Signature* columnar, const Options& options);

  // Without domains, all rows belong to candidates.
  Domains() : Domains({}, {}, nullptr, {}) {}

  // The domain of an input of the signature, or kCandidates.
  int domain_of(size_t input) const {
    return input < domain_of_.size() ? domain_of_[input] : kCandidates;
  }

  // Whether requests may have an index.
  bool take_index() const { return !index_names_.empty(); }

  bool HasIndex(const ReceivedRequest& received) const { return IndexedIn(received) != 0; }

  // Reads a request with an index; the batch refers to the request's columns. Returns
  // INVALID_ARGUMENT if the columns of a domain, or of the candidates, violate the expansion rule,
  // or if an index value is not a row of the domain. Returns RESOURCE_EXHAUSTED beyond the limits.
  absl::Status Plan(const ReceivedRequest& received, Batch* batch) const;

  // Sets the domains of a batch without an index: one row for the user, one row per candidate for
  // items, and either for any other domain with a stage.
  void SetRows(Batch* batch) const;

  // Whether the longest lists are equally long for every user's candidates, so that running users
  // together does not change the padding. `lengths` are positions of the lists' lengths.
  bool HaveOneLength(const Batch& batch, absl::Span<const int> lengths) const;

  // Builds an input's feed from its column or default. The feed has the rows of the input's domain
  // if the domain has an index, otherwise one row per candidate.
  absl::Status BuildFeed(const Batch& batch, int input, tensorflow::Tensor* feed) const;

 private:
  // How to read requests with a given set of indices: each indexed domain separately, all other
  // columns together.
  struct Form {
    uint64_t indexed = 0;                     // one bit per domain
    std::vector<SignatureInputs> domains;     // per domain; empty if it has no index
    std::vector<SignatureInputs> candidates;  // one element, for all other columns and the indices
    std::vector<int> places;  // per input: its position in its domain's inputs or in `candidates`
    bool has(size_t domain) const { return (indexed >> domain & 1) != 0; }
  };

  // The received columns of one indexed domain, or of the candidates.
  struct Side {
    std::vector<const ColumnSource*> columns;  // by position
    std::vector<absl::string_view> unknown;
    ExpansionPlan plan;

    void Begin(size_t inputs) {
      columns.assign(inputs, nullptr);
      unknown.clear();
    }
    absl::Status Plan(const SignatureInputs& inputs) {
      return inputs.Plan(columns, unknown, &plan);
    }
  };
  bool MayTakeIndex() const;
  absl::StatusOr<const Form*> FormOf(uint64_t indexed) const;
  // The inputs of the domain of `input` if the domain has an index, otherwise of the candidates.
  const SignatureInputs& SideOf(const Form& form, int input) const;
  absl::Status MakeForm(uint64_t indexed, Form* form) const;
  uint64_t IndexedIn(const ReceivedRequest& received) const;
  absl::Status ReadIndex(const Form& form, size_t domain, const Side& candidates,
                         Batch* batch) const;

  const tensorflow::SignatureDef declared_;
  const SignatureInputs inputs_;  // the inputs as declared, without limits
  const std::vector<DomainColumns> domains_;
  const Signature* const columnar_;
  const Options options_;
  std::vector<int> domain_of_;              // per input of the signature
  std::vector<std::vector<int>> of_stage_;  // per domain: the inputs of its stage
  std::vector<std::string> index_names_;    // per domain; empty if it has no columns
  mutable std::shared_mutex mutex_;
  mutable std::map<uint64_t, Form> forms_;  // by `indexed`; never shrinks
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_DOMAINS_H_
