// The interface of programs, and the plan and batch on which they run.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/engine.h"
#include "server/engine/input.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// What a program runs on: rows of every domain and the candidates that read them, from one request,
// several, or a slice of one (docs/domains.md).
struct Batch {
  // The user domain. A signature without domains has only the candidates' rows.
  static constexpr size_t kUser = 0;

  enum class Form : uint8_t {
    kRows,      // each column has one row per candidate, or one row for all
    kOneUser,   // like kRows, but planned for the exact program: user columns keep one row
    kIndexed,   // candidates read the rows of some domains by an index
    kPrefetch,  // one user's columns, and no candidates
    kAsSent,    // columns of any number of rows, fed unchanged
  };

  struct Domain {
    int64_t rows = 1;
    // int64 [N], each in [0, rows). Empty if `rows` is 1 or N: then all candidates read the only
    // row, or candidate i reads row i.
    tensorflow::Tensor index;
    bool has_index() const { return index.NumElements() > 0; }
  };

  Form form = Form::kRows;
  // For kAsSent: what the expansion rule says against the request, if TensorFlow refuses it, too.
  absl::Status unequal_rows;
  bool of_several = false;  // of several requests, so rows of an indexed domain may repeat
  // Whether lists are padded to the longest one of all candidates, as in a request of tf.Examples.
  // Otherwise each user's candidates are a request of their own, with its own longest lists.
  bool pads_together = false;
  int64_t candidates = 0;                     // N
  const std::vector<int>* outputs = nullptr;  // positions in the sorted aliases, ascending
  std::vector<Domain> domains;                // in the order of the signature's domains
  // One per input of the signature, with as many rows as the input's domain, or one row; null if
  // the input was left out. The request, or whoever made the batch, keeps them.
  absl::Span<const Input* const> columns;
  // If not null, the users' states, already computed; user columns are then not read.
  const std::vector<tensorflow::Tensor>* user_states = nullptr;

  bool has_index(int domain) const { return has(domain) && domains[domain].has_index(); }
  int64_t rows_of(int domain) const { return has(domain) ? domains[domain].rows : candidates; }

 private:
  bool has(int domain) const { return domain >= 0 && static_cast<size_t>(domain) < domains.size(); }
};

// A way to answer requests to a signature.
//
// Any number of threads may use a program at the same time.
class Program {
 public:
  virtual ~Program() = default;

  // A string literal under which runs are counted, such as "whole".
  virtual std::string_view name() const = 0;

  // Whether the program can run the batch, judged by its form and shapes.
  virtual bool Accepts(const Batch& batch) const = 0;

  // Positions of the inputs that hold the lengths of lists whose longest one in a run affects the
  // program's results.
  virtual std::vector<int> own_lengths() const = 0;

  // Sets the outputs that the batch asks for. Returns false, without setting them, if this program
  // would do more work than the next one. REQUIRES Accepts().
  virtual absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) = 0;
};

class Programs;
struct TranscodedSignature;

// A request that its signature's programs have read once: its columns and the batch to run. Set by
// Programs::Plan(), except `rules`, `examples` and the profile, which the model sets.
struct RequestPlan final : PlannedRequest {
  // Returns a released plan if there is one, so that reading a request does not allocate.
  static std::unique_ptr<RequestPlan, ReleasePlan> New();
  void Release() override;

  const DecodedRequest* request = nullptr;
  const BatchRules* rules = nullptr;
  const Programs* programs = nullptr;
  const TranscodedSignature* examples = nullptr;  // null unless tf.Examples are read as columns
  ReceivedRequest received;
  Batch batch;               // refers to `received`
  ExpansionStats expansion;  // savings from sending columns once
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_
