// A SavedModel loaded into a TensorFlow session.
#ifndef COLCAST_SERVER_ENGINE_MODEL_H_
#define COLCAST_SERVER_ENGINE_MODEL_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/batch/joined_requests.h"
#include "server/engine/engine.h"
#include "server/engine/examples/transcoding.h"
#include "server/engine/model_sessions.h"
#include "server/engine/program/make_programs.h"
#include "server/engine/program/observed_stage.h"
#include "server/engine/program/programs.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/record/row_record.h"
#include "server/engine/rewrites/float32_tables.h"
#include "server/engine/rewrites/impure_signatures.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewritten_graph.h"
#include "server/engine/signature.h"

namespace colcast::engine {

struct RewrittenSignature {
  std::string says;  // "14 lookups run as one op"
  tensorflow::GraphDef graph;
};

// By signature.
using RewrittenSignatures = std::map<std::string, RewrittenSignature>;

class TensorFlowModel final : public Model {
 public:
  // Errors are TensorFlow's own.
  static absl::StatusOr<std::unique_ptr<TensorFlowModel>> Load(
      const std::string& directory, const std::vector<std::string>& tags, const Options& options,
      std::shared_ptr<const StateCaches> memories);

  const std::string& signatures() const override { return declared_; }
  std::vector<StoreStats> stores() const override;
  std::vector<ProgramStats> programs() const override;
  std::vector<GraphChoice> graphs() const override { return graphs_; }
  std::vector<std::string> notes() const override;
  Status Predict(const DecodedRequest& request, std::unique_ptr<Outputs>* outputs) const override;
  Status PredictTogether(const DecodedRequest& request,
                         std::unique_ptr<Outputs>* outputs) const override;
  Status Check(const DecodedRequest& request) const override;
  RequestProfile Profile(const DecodedRequest& request, const BatchRules& rules) const override;
  std::unique_ptr<Slices> Split(const DecodedRequest& request,
                                const BatchRules& rules) const override;
  void ObserveRuns(RunObserver* observer) const override { thread_observer = observer; }
  bool FillStates(const DecodedRequest& rows) const override;
  void PredictBatch(const BatchRules& rules, std::vector<BatchMember>* members) const override;
  Status PredictWithoutStates(const BatchRules& rules, const DecodedRequest& request,
                              std::unique_ptr<Outputs>* outputs) const override;

  // What answers requests to a signature. FAILED_PRECONDITION if there is none of that name.
  absl::StatusOr<const Programs*> Find(std::string_view signature_name) const;

 private:
  explicit TensorFlowModel(std::shared_ptr<const StateCaches> memories)
      : memories_(std::move(memories)) {}

  absl::Status Load(const std::string& directory, const std::vector<std::string>& tags,
                    const Options& options);
  SignatureGraphs GraphsToServe(const NeededGraphs& needed, const Options& options);
  RewrittenSignatures Rewritten(const tensorflow::MetaGraphDef& saved,
                                const SignatureGraphs& graphs, const Options& options);
  struct Added;
  void AddSignatures(const SignatureGraphs& graphs, const RewrittenSignatures& rewritten,
                     const std::map<std::string, RowRecord>& records,
                     const std::vector<std::string>& waiting, const Options& options);
  // Any number of threads may add signatures. `rewritten` may be null.
  Added Add(const std::string& name, const RowRecord& record, const tensorflow::GraphDef& saved,
            const RewrittenSignature* rewritten, bool prepared, const Options& options);
  absl::Status MakeSignature(const tensorflow::SignatureDef& declared, const RowRecord& record,
                             const tensorflow::GraphDef& graph, const Options& options,
                             bool prepared, std::unique_ptr<Signature>* made);
  void LoadTranscoding(const std::string& directory, const Options& options);
  // Whether a signature is prepared by the first request that it answers itself, if any does: its
  // requests are read as columns.
  static bool MayWait(const std::string& name, const std::vector<RecordedSignatures>& records,
                      const Options& options);
  void PrepareWaiting(const std::string& name);
  // Runs a request as tf.Examples that are read as columns, where it can be, or as it is.
  absl::Status RunAny(const DecodedRequest& request, RunResult* result) const;
  bool TranscodeAndRun(const DecodedRequest& examples, RunResult* result) const;
  // Null unless the request's signature takes tf.Examples that are read as columns.
  RunExamples ExamplesOf(const DecodedRequest& request) const;
  absl::Status RunSignature(std::string_view name, const DecodedRequest& request,
                            RunResult* result) const;
  void RunTogetherAs(const Programs& programs, const BatchRules& rules,
                     std::vector<BatchMember*>* members) const;
  void JoinSignatures(const NeededGraphs& needed, const Options& options);
  // Nothing is kept of impure signatures, and none of their requests joined or split.
  void RunApart(std::map<std::string, RowRecord>* by_name);
  void AddNotes(const std::vector<RecordedSignatures>& records);

  std::shared_ptr<const StateCaches> memories_;
  std::atomic<bool> uses_default_executor_{false};
  std::unique_ptr<ModelSessions> sessions_;
  SignatureMap saved_signatures_;
  std::string declared_;  // see signatures()
  SignaturesByName signatures_;
  ProgramsByName programs_;
  // By signature: that of all that share its only input, itself among them.
  std::map<std::string, std::shared_ptr<Signature>, std::less<>> joined_;
  std::map<std::string, absl::Status, std::less<>> unusable_;  // signatures Predict refuses
  Impurities impure_;
  TablesInUse tables_;
  std::vector<GraphChoice> graphs_;
  std::vector<std::string> notes_;
  Transcoding transcoding_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MODEL_H_
