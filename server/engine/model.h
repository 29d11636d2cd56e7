// A SavedModel loaded into a TensorFlow session.
#ifndef COLCAST_SERVER_ENGINE_MODEL_H_
#define COLCAST_SERVER_ENGINE_MODEL_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/engine/examples/transcoding.h"
#include "server/engine/mapping/map_variables.h"
#include "server/engine/mapping/table_deltas.h"
#include "server/engine/mapping/table_reader_thread.h"
#include "server/engine/model_sessions.h"
#include "server/engine/program/make_programs.h"
#include "server/engine/program/programs.h"
#include "server/engine/program/stage.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/record/row_record.h"
#include "server/engine/rewrites/impure_signatures.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/signature.h"

namespace colcast::engine {

struct ChoiceFile;

struct RewrittenSignature {
  std::string says;  // e.g. "14 lookups run as one op"
  tensorflow::GraphDef graph;
};

using RewrittenSignatures = std::map<std::string, RewrittenSignature>;

// How requests to one signature are answered.
struct ServedSignature {
  absl::Status status;  // if not OK, the signature cannot be run
  const Programs* programs = nullptr;
  const TranscodedSignature* examples = nullptr;  // null unless tf.Examples are read as columns
};

class TensorFlowModel final : public Model {
 public:
  // Returns TensorFlow's errors unchanged.
  static absl::StatusOr<std::unique_ptr<TensorFlowModel>> Load(
      const std::string& directory, const std::vector<std::string>& tags, const Options& options,
      std::shared_ptr<const StateCaches> memories);

  const ModelDescription& description() const override { return description_; }
  void LogAs(const LogFields& fields) override;
  ModelStats stats() const override;
  TableMemory tables() const override;
  std::string damage() const override;
  Status Plan(const DecodedRequest& request, int signature, const BatchRules& rules,
              PlanPtr* plan) const override;
  Status Run(const PlannedRequest& plan, std::unique_ptr<Outputs>* outputs) const override;
  void Run(std::vector<BatchMember>* members) const override;
  std::shared_ptr<const void> PinTables() const override { return ReadTables(true); }
  std::unique_ptr<Slices> Split(const PlannedRequest& plan) const override;
  void ObserveRuns(RunObserver* observer) const override { thread_observer = observer; }

 private:
  TensorFlowModel(std::string directory, Options options,
                  std::shared_ptr<const StateCaches> memories)
      : directory_(std::move(directory)),
        options_(std::move(options)),
        memories_(std::move(memories)) {}

  absl::Status Load(const std::vector<std::string>& tags);
  absl::Status Restore(const tensorflow::MetaGraphDef& saved, const NeededGraphs& needed,
                       const std::string& why_shared);
  // Makes lookups in all graphs read mapped tables. Copies tables that graphs read in other ways
  // into memory.
  absl::Status ReadMapped(SignatureGraphs* graphs, RewrittenSignatures* rewritten);
  // Checks the mapped tables that the signatures read, and applies their deltas.
  void ServeMapped();
  SignatureGraphs GraphsToServe(const NeededGraphs& needed);
  RewrittenSignatures Rewritten(const tensorflow::MetaGraphDef& saved,
                                const SignatureGraphs& graphs);
  // Applies the exact rewrites and those of `choice`. Returns the signatures that changed.
  absl::StatusOr<RewrittenSignatures> RewrittenBy(const ChoiceFile& choice,
                                                  const tensorflow::MetaGraphDef& saved,
                                                  const SignatureGraphs& graphs);
  struct Added;
  void AddSignatures(const SignatureGraphs& graphs, const RewrittenSignatures& rewritten,
                     const std::map<std::string, RowRecord>& records,
                     const std::vector<std::string>& waiting);
  // May be called from any number of threads. `rewritten` may be null.
  Added Add(const std::string& name, const RowRecord& record, const tensorflow::GraphDef& saved,
            const RewrittenSignature* rewritten, bool prepared);
  absl::Status MakeSignature(const tensorflow::SignatureDef& declared, const RowRecord& record,
                             const tensorflow::GraphDef& graph, bool prepared,
                             std::unique_ptr<Signature>* made);
  void LoadTranscoding(const std::vector<RecordedSignatures>& records);
  // Whether preparing the signature may wait for its first use, because its requests are normally
  // read as columns.
  bool MayWait(const std::string& name, const std::vector<RecordedSignatures>& records) const;
  void PrepareWaiting(const std::string& name);
  // Sets how requests to each signature that has programs are answered.
  void Serve();
  // Returns why a signature cannot be run; FAILED_PRECONDITION if the model does not have it.
  absl::Status NotServed(std::string_view name) const;
  // While the result exists, runs on the calling thread read the tables as they are now. Null if no
  // table has changed and `pinned` is false.
  std::shared_ptr<const tables::ReadsGeneration> ReadTables(bool pinned = false) const;
  // Decides how one-row inputs of signatures without a record are fed.
  void SetOneRowInputs(const SignatureGraphs& graphs,
                       std::map<std::string, RowRecord>* by_name) const;
  // Disables caching, joining and splitting for impure signatures.
  void RunApart(std::map<std::string, RowRecord>* by_name);
  void AddNotes(const std::vector<RecordedSignatures>& records);

  const std::string directory_;
  const Options options_;
  const std::shared_ptr<const StateCaches> memories_;
  std::atomic<bool> uses_default_executor_{false};
  std::unique_ptr<ModelSessions> sessions_;
  SignatureMap saved_signatures_;
  ModelDescription description_;
  SignaturesByName signatures_;
  ProgramsByName programs_;
  std::map<std::string, ServedSignature, std::less<>> served_;
  std::vector<ServedSignature*> by_number_;  // null for signatures without programs
  Impurities impure_;
  std::set<std::string> int8_tables_;  // variables whose int8 form is mapped
  MappedVariables mapped_;
  std::unique_ptr<TableReaderThread> table_reader_;  // null if no table is mapped
  std::unique_ptr<TableDeltas> table_deltas_;        // null with --map_tables=off
  Transcoding transcoding_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MODEL_H_
