// The programs that a model has for one signature, and the plan and batch on which they run. The
// only place that chooses a program for a request and counts the choice (docs/domains.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/log.h"
#include "server/engine/engine.h"
#include "server/engine/input.h"
#include "server/engine/row_trials.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class Domains;
class ExactProgram;
class Programs;
class StagedProgram;
struct TranscodedSignature;

// What a program runs on: rows of every domain and the candidates that read them. They come from
// one request, several requests, or a slice of a request (docs/domains.md).
struct Batch {
  // The index of the user domain. Without domains, a signature has only the candidates' rows.
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
  // For kAsSent: the expansion rule's error, reported if TensorFlow also refuses the request.
  absl::Status unequal_rows;
  bool of_several = false;  // from several requests, so rows of an indexed domain may repeat
  // Whether lists are padded to the longest one of all candidates, as in a request of tf.Examples;
  // otherwise to the longest one of each user's candidates, as in one request per user.
  bool pads_together = false;
  int64_t candidates = 0;                     // N
  const std::vector<int>* outputs = nullptr;  // positions in the sorted aliases, ascending
  std::vector<Domain> domains;                // in the order of the signature's domains
  // One per input of the signature, with as many rows as the input's domain, or one row; null if
  // the input was left out. Owned by the request or by the maker of the batch.
  absl::Span<const Input* const> columns;
  // The users' states if they are already computed, else null. If set, user columns are not read.
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

  // Positions of the length inputs whose maximum in a run affects the results.
  virtual std::vector<int> own_lengths() const = 0;

  // Whether rows are recorded as independent of the other rows of their run.
  virtual bool has_independent_rows() const = 0;

  // Statistics of the program's stores.
  virtual std::vector<states::StoreStats> stats() const { return {}; }

  // Sets the outputs that the batch asks for. Returns false, without setting them, if this program
  // would do more work than the next one. REQUIRES Accepts().
  virtual absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) = 0;
};

// A request that its signature's programs have read once: its columns and the batch to run. The
// model sets `rules`, `examples` and the profile, Programs::Plan() all other fields.
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

class Programs {
 public:
  // The domains and programs of a signature, besides the program `whole`, which always exists.
  // Missing programs are null.
  struct Others {
    Others();
    Others(Others&&) noexcept;
    ~Others();

    std::unique_ptr<Domains> domains;  // never null; empty if the signature has no domains
    std::unique_ptr<StagedProgram> stages;
    std::unique_ptr<Program> rows;        // never together with stages
    std::unique_ptr<ExactProgram> exact;  // never together with stages or rows
    std::unique_ptr<Program> gathered;
  };

  // `signature` must outlive the programs.
  Programs(std::string name, const Signature& signature, Others others);
  ~Programs();

  const Signature& signature() const { return *signature_; }
  const Domains& domains() const { return *others_.domains; }
  StagedProgram* stages() const { return others_.stages.get(); }

  // Reads a request and reports every error except invalid values: RESOURCE_EXHAUSTED beyond
  // limits, and INVALID_ARGUMENT from Signature and Domains. The plan refers to the request.
  absl::Status Plan(const DecodedRequest& request, RequestPlan* plan) const;

  // The properties of a planned request that a scheduler needs.
  RequestProfile ProfileOf(const RequestPlan& plan, const BatchRules& rules) const;

  // Runs the batch on the first program that accepts it. If that program fails, or its Run()
  // returns false, tries the next one. Returns the last error if no program answers.
  absl::Status Run(const Batch& batch, RunResult* result) const;

  // Whether requests for these outputs (positions in the sorted aliases) may run together: if the
  // record says that rows are independent or, without a record, if the rules allow it.
  bool CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const;

  // Positions of the length inputs whose maximum in a run affects a program's results.
  const std::vector<int>& own_lengths() const { return own_lengths_; }

  // Positions of the length inputs whose maximum must be equal in requests that run together. With
  // stages there are few, because each stage computes rows of one length at a time.
  const std::vector<int>& joined_lengths() const { return joined_lengths_; }

  // See Model::LogAs().
  void LogAs(const LogFields& fields) { fields_ = fields; }

  // Stops joining and splitting. Call if a joined or split run returned a wrong number of rows.
  void NeverJoin() const { never_join_ = true; }

  // One count for each program and outcome that has occurred, and statistics of all stores.
  std::vector<ProgramStats> counts() const;
  std::vector<StoreStats> stores() const;

 private:
  struct Counted {
    explicit Counted(Program* program) : program(program) {}
    Program* const program;
    std::atomic<int64_t> answered = 0;
    std::atomic<int64_t> failed = 0;
  };

  void Count(const absl::Status& status, Counted* run) const;
  // Whether some columns belong to the user and requests may have several users.
  bool has_users() const;
  absl::Status PlanRows(ReceivedRequest* received, Batch* batch) const;
  absl::Status PlanUnrecorded(ReceivedRequest* received, Batch* batch) const;
  bool MayShareRuns(const BatchRules& rules) const;
  bool CanBeSplit(const BatchRules& rules, const std::vector<int>& outputs) const;

  const std::string name_;
  const Signature* const signature_;
  const Others others_;
  const std::unique_ptr<Program> whole_;
  const RowTrials trials_;
  mutable std::deque<Counted> programs_;  // in the order in which they are tried
  const std::vector<int> own_lengths_;
  const std::vector<int> joined_lengths_;
  LogFields fields_;
  mutable std::atomic<bool> never_join_ = false;  // a joined run returned a wrong number of rows
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAMS_H_
