// The stage that scores candidates, from the states of every domain and the candidates' own
// columns.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_LAST_STAGE_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_LAST_STAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/signature.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class LastStage {
 public:
  // A domain as an input of this stage. Its inputs are named DOMAIN_state/0 and so on,
  // row_to_DOMAIN and DOMAIN_state/row. The last one must hold 0 to R - 1: if TF Serving
  // concatenates requests, the numbers repeat, and the graph fails instead of mixing users. Without
  // row_to_DOMAIN, as for items, candidate i reads row i.
  struct Domain {
    std::string name;
    std::vector<std::string> states;  // the sorted outputs of its stage
  };

  // The feeds of one run. `states` and `indices` have an element per domain.
  struct Feeds {
    // [R, ...] each, in the order of Domain::states.
    std::vector<std::vector<tensorflow::Tensor>> states;
    std::vector<tensorflow::Tensor> indices;  // int64 [N], each in [0, R)
    // In the order of the positions that Connect() returned.
    std::vector<tensorflow::Tensor> context;
    int64_t candidates = 0;  // N
  };

  // `signature` must outlive the stage.
  explicit LastStage(const Signature* signature) : signature_(signature) {}

  const Signature& signature() const { return *signature_; }

  // Maps each input to a state, an index or a column of the late signature, and sets `*context` to
  // the positions of those columns. Returns false if an input is none of these, or if no input
  // reads one of the states.
  bool Connect(absl::Span<const Domain> domains, const SignatureInputs& late,
               std::vector<int>* context);

  // Whether candidates read the domain's rows by an index.
  bool has_index(size_t domain) const { return has_index_[domain]; }

  // An index with which all `rows` candidates read the first row.
  static tensorflow::Tensor FirstRow(int64_t rows);

  absl::Status Run(const Feeds& feeds, const std::vector<int>& outputs, RunResult* result) const;

  // Like Run(), for a stage that takes only one row of the first domain: runs once for each row
  // that has candidates. REQUIRES at least one candidate.
  absl::Status RunByUser(const Feeds& feeds, const std::vector<int>& outputs,
                         RunResult* result) const;

 private:
  enum class Source : uint8_t { kState, kStateRow, kIndex, kContext };
  struct Place {
    Source source;
    size_t domain;
    int index;  // index into the states or the context columns
  };

  bool FindSource(const std::string& alias, absl::Span<const Domain> domains, Place* place);
  absl::Status Pick(absl::Span<const int64_t> rows, Feeds* feeds) const;

  const Signature* const signature_;
  std::vector<Place> places_;
  std::vector<bool> has_index_;  // per domain
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_LAST_STAGE_H_
