// The stage that scores candidates: it reads the states of every domain, and the candidates' own
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
  // A domain as this stage sees it. Its inputs are DOMAIN_state/0 and so on, row_to_DOMAIN and
  // DOMAIN_state/row; the last, 0 to R - 1, lets the graph refuse rows of several requests that TF
  // Serving has joined. Without row_to_DOMAIN, as items have it, candidate i reads row i.
  struct Domain {
    std::string name;
    std::vector<std::string> states;  // the outputs of its stage, sorted
  };

  // What the stage is run with. Both by domain.
  struct Feeds {
    std::vector<std::vector<tensorflow::Tensor>> states;  // [R, ...], by the domain's states
    std::vector<tensorflow::Tensor> indices;              // int64 [N], each in [0, R)
    std::vector<tensorflow::Tensor> context;              // by Connect()'s `context`
    int64_t candidates = 0;                               // N
  };

  // `signature` must outlive the stage.
  explicit LastStage(const Signature* signature) : signature_(signature) {}

  const Signature& signature() const { return *signature_; }

  // Finds what each input is fed with, and sets `*context` to the positions of the late signature's
  // inputs that are among them. False if there is something else, or a state that is not read.
  bool Connect(absl::Span<const Domain> domains, const SignatureInputs& late,
               std::vector<int>* context);

  // Whether candidates read a domain's rows by an index.
  bool has_index(size_t domain) const { return has_index_[domain]; }

  // The index of `rows` candidates that all read the first row.
  static tensorflow::Tensor FirstRow(int64_t rows);

  absl::Status Run(const Feeds& feeds, const std::vector<int>& outputs, RunResult* result) const;

  // The same for a stage that takes one row of the first domain only: one run for each of its rows
  // that has candidates. REQUIRES a candidate.
  absl::Status RunByUser(const Feeds& feeds, const std::vector<int>& outputs,
                         RunResult* result) const;

  // Implementation details follow.
 private:
  enum class Source : uint8_t { kState, kStateRow, kIndex, kContext };
  struct Input {
    Source source;
    size_t domain;
    int index;  // among the states or the context columns
  };

  bool FindSource(const std::string& alias, absl::Span<const Domain> domains, Input* input);
  absl::Status Pick(absl::Span<const int64_t> rows, Feeds* feeds) const;

  const Signature* const signature_;
  std::vector<Input> inputs_;
  std::vector<bool> has_index_;  // by domain
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_LAST_STAGE_H_
