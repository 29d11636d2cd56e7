// The whole contract between the server and TensorFlow.
//
// The server never links TensorFlow: it opens libcolcast_engine-RELEASE.so, which exports the one
// function at the end of this file, and talks to it through these plain types. Both sides are
// compiled by the same compiler against the same C++ standard library, so std types may cross;
// memory is freed by the virtual destructor of the side that made it.
#ifndef COLCAST_SERVER_ENGINE_ENGINE_H_
#define COLCAST_SERVER_ENGINE_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/log.h"
#include "server/base/status.h"
#include "server/states/store_stats.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"

namespace colcast::engine {

// Whether graphs are rewritten when a model is loaded (server/engine/rewrites/README.md).
enum class GraphOptimization {
  kOff,
  kExact,  // where the outputs' bits stay what they are
  kFast,   // and as a choice file says, within a tolerance; without one as kExact
};

// What answers for a signature of tf.Examples that was exported with columnar ones
// (docs/tf_examples.md).
enum class ExampleTranscoding {
  kOff,    // the signature itself
  kExact,  // `columnar` or `columnar_exact`: the same bits
  kLate,   // `columnar_late`, where the user is the same in all Examples
};

struct Options {
  // Threads one operation may use, and threads one request's operations may be spread over. With
  // inter_op_parallelism 0 a request's operations run on the calling thread, one after the other.
  int intra_op_parallelism = 1;
  int inter_op_parallelism = 0;
  // A serialized tensorflow.ConfigProto that sessions start from; its threads do not count. Empty:
  // TensorFlow's defaults.
  std::string session_config;
  ExampleTranscoding example_transcoding = ExampleTranscoding::kExact;
  GraphOptimization graph_optimization = GraphOptimization::kExact;
  // A file, or a folder of files, that `colcast tune --graphs` wrote; for kFast.
  std::string graph_choices;
  // Whether variables of so many bytes or more whose rows are only looked up stay in the
  // checkpoint's files (server/engine/mapping/README.md).
  bool map_tables = true;
  int64_t map_tables_min_bytes = int64_t{64} << 20;
  bool lock_tables = false;  // keep them in memory
  // Signatures that are not served: FAILED_PRECONDITION. What they alone need is not kept.
  std::vector<std::string> unserved_signatures;
  // What a request may ask for; more is RESOURCE_EXHAUSTED before anything is allocated for it.
  int64_t max_request_columns = 10'000;
  int64_t max_request_rows = 1 << 20;
  int64_t max_expanded_bytes = int64_t{1} << 30;  // tensors of all inputs, beyond what was sent
  // The memory for what was computed for users and for items, all models together (docs/states.md).
  // 0: none is kept.
  int64_t user_state_bytes = int64_t{64} << 20;
  int64_t item_state_bytes = int64_t{64} << 20;
  LogSink log = WriteLog;  // the executable's: its queue and format
};

// What sending columns once did for a request, or finding them repeated in its tf.Examples.
struct ExpansionStats {
  int64_t rows = 0;               // N
  int64_t columns_sent_once = 0;  // came as one row beside N > 1 rows of others
  int64_t bytes_saved = 0;        // what N - 1 more rows of them would have added to the request
  bool transcoded = false;        // tf.Examples that were read as columns
  int64_t repeated_bytes = 0;     // of them, those of features that all Examples had in common
};

// A state store of one signature of a model (server/states/store_stats.h).
struct StoreStats {
  std::string signature;  // "columnar_late"
  states::StoreStats counted;
};

// How often a program answered requests to a signature, or failed to (docs/domains.md).
struct ProgramStats {
  std::string signature;
  std::string_view program;  // "whole", "exact", "stages", "rows", "gathered"
  std::string_view outcome;  // "ok", "failed"
  int64_t count = 0;
};

// How the graph of a signature was rewritten: one line.
struct GraphChoice {
  std::string signature;
  std::string says;
};

// A model's tables that stay in its checkpoint's files, in bytes.
struct TableMemory {
  int64_t mapped = 0;
  int64_t resident = 0;  // of them in the page cache
  int64_t locked = 0;    // and staying there
  int64_t checked = 0;   // read, with the checksum that was saved
  std::string damage;    // the error of a damaged file; its model answers DATA_LOSS
};

// What a request returned. Keeps the tensors alive that `columns` points into.
class Outputs {
 public:
  virtual ~Outputs() = default;
  virtual const std::vector<OutputColumn>& columns() const = 0;
  virtual const ExpansionStats& expansion() const = 0;
};

// How requests may be put together, and taken apart: what an operator asked for.
struct BatchRules {
  // Whether signatures may be, too, of which nobody proved that a row's score does not depend on
  // the rows beside it: all but those recorded as such (docs/domains.md). As TF Serving's batching,
  // which does so with every signature: the last bits of a score may change.
  bool any_signature = false;
  // Lists of different lengths are padded to the longest: with the first value of the tensor, as TF
  // Serving does. Without it such requests run apart. Lists with a length beside them, as exported
  // signatures have them, are padded anyway.
  bool pad_variable_length_inputs = false;
  // Rows that a joined run may have, rising: rows are repeated to the next of them. Empty: any.
  std::vector<int64_t> allowed_batch_sizes;
};

// What a scheduler may know of a request before it runs; made from sizes alone.
struct RequestProfile {
  int64_t rows = 1;    // N: candidates, or Examples
  uint64_t group = 0;  // requests of one model and the same group may be joined; 0: with none
  bool can_be_split = false;  // Model::Split() may make slices of it
  int64_t size = 0;           // what its time follows if not the rows: bytes of texts; 0: the rows
  int signature = 0;          // its number among those of Model::signatures(), sorted by name
};

// A request as its model reads it, once: queue, run and answer share it. Made by Model::Plan().
class PlannedRequest {
 public:
  virtual ~PlannedRequest() = default;
  virtual void Release() { delete this; }  // by its owner: who made it may use it again

  RequestProfile profile;
};
struct ReleasePlan {
  void operator()(PlannedRequest* plan) const { plan->Release(); }
};
using PlanPtr = std::unique_ptr<PlannedRequest, ReleasePlan>;

// One request of several that run together.
struct BatchMember {
  const PlannedRequest* plan = nullptr;
  Status status;                     // set by the run
  std::unique_ptr<Outputs> outputs;  // set if `status` is OK
};

// A request that runs by some of its rows at a time. Any number of threads may take slices and run
// different ones at once.
class Slices {
 public:
  virtual ~Slices() = default;

  virtual int64_t rows_left() const = 0;  // in no slice yet

  // The number of a slice of the next rows, at most about `rows`; -1 if none are left. Slices of as
  // many rows are about equal.
  virtual int Take(int64_t rows) = 0;

  // The number of rows of a slice.
  virtual int64_t rows(int slice) const = 0;

  // Runs a slice on the calling thread, once. An error is kept for Join().
  virtual void Run(int slice) = 0;

  // Returns the outputs that Model::Run() would return. After an error other than
  // RESOURCE_EXHAUSTED the caller must run the request whole. REQUIRES all rows taken and run.
  virtual Status Join(std::unique_ptr<Outputs>* outputs) = 0;
};

// One run of a stage.
struct StageRun {
  std::string_view stage;  // its domain; as long as the model lives
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
  int64_t rows = 0;   // whose states, or scores, were wanted
  int64_t hits = -1;  // of them those that were kept; -1: none are kept of this stage
};

// Is told of the stages that run, on the thread that runs them.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnStage(const StageRun& run) = 0;
};

// One loaded version of a model. All methods may be called from any thread at any time.
class Model {
 public:
  virtual ~Model() = default;

  // A serialized tensorflow.MetaGraphDef that holds nothing but the model's signatures.
  virtual const std::string& signatures() const = 0;

  // What is counted of the model's state stores; empty if it has no signature that keeps any.
  virtual std::vector<StoreStats> stores() const { return {}; }

  // Which programs ran.
  virtual std::vector<ProgramStats> programs() const { return {}; }

  // The signatures whose graphs are not those that were saved.
  virtual std::vector<GraphChoice> graphs() const { return {}; }

  virtual TableMemory tables() const { return {}; }

  // What an operator should know of how it is served, a sentence each.
  virtual std::vector<std::string> notes() const { return {}; }

  // Reads a request: all that is wrong with it but for its values is found here, before anything is
  // allocated for it. Errors carry the code TF Serving would give: FAILED_PRECONDITION for an
  // unknown signature, INVALID_ARGUMENT for wrong inputs and outputs. Cheap enough for every
  // request that waits. Request and rules must outlive the plan.
  virtual Status Plan(const DecodedRequest& request, const BatchRules& rules,
                      PlanPtr* plan) const = 0;

  // Runs planned requests on the calling thread, joined where that is sound and they fit together,
  // one by one where not. Whatever is wrong with one is that one's own error: it does not touch the
  // others.
  virtual void Run(std::vector<BatchMember>* members) const = 0;

  // Runs one.
  Status Run(const PlannedRequest& plan, std::unique_ptr<Outputs>* outputs) const {
    std::vector<BatchMember> alone(1);
    alone[0].plan = &plan;
    Run(&alone);
    *outputs = std::move(alone[0].outputs);
    return std::move(alone[0].status);
  }

  // As Run(), but finds and keeps no states: what runs beside the requests that are answered takes
  // no memory from their states.
  virtual Status RunWithoutStates(const PlannedRequest& plan,
                                  std::unique_ptr<Outputs>* outputs) const {
    return Run(plan, outputs);
  }

  // Plans and runs a request that nothing else runs with.
  Status Predict(const DecodedRequest& request, std::unique_ptr<Outputs>* outputs) const {
    const BatchRules rules;
    PlanPtr plan;
    Status status = Plan(request, rules, &plan);
    return status.ok() ? Run(*plan, outputs) : status;
  }

  // Runs several signatures at once: those whose only input is that of the signature the request
  // names, by name and tensor. All their outputs, and so the request's output_filter, are called
  // SIGNATURE/OUTPUT. Errors as Predict's; FAILED_PRECONDITION where no other shares the input.
  virtual Status PredictTogether(const DecodedRequest& request,
                                 std::unique_ptr<Outputs>* outputs) const = 0;

  // What the calling thread runs from now on is told to `observer`; null: to nobody.
  virtual void ObserveRuns(RunObserver*) const {}

  // Computes and keeps the states of rows of one domain, whose columns the request has and no
  // other, as far as there is room; their keys in any case, if the columns are stored. For whatever
  // signatures have a stage for them; false if none has.
  virtual bool FillStates(const DecodedRequest&) const { return false; }

  // Makes a request ready to run by slices. What all of them share, the user above all, is computed
  // here, once. Null where it cannot be split: because that is not sound, because there is nothing
  // to split or its values are wrong, which Run() says. The plan must outlive the slices.
  virtual std::unique_ptr<Slices> Split(const PlannedRequest&) const { return nullptr; }
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Makes the ops of a library known to every model loaded from now on. INVALID_ARGUMENT, with the
  // path and the reason, if it cannot be loaded.
  virtual Status LoadOpLibrary(const std::string& path) const = 0;

  // Loads the SavedModel in `directory` (the version directory that holds saved_model.pb) with the
  // MetaGraph that has exactly `tags`. Ops that TensorFlow lacks are looked for in the packages
  // installed beside it; where nobody has one, the error says which package would.
  virtual Status Load(const std::string& directory, const std::vector<std::string>& tags,
                      std::unique_ptr<Model>* model) const = 0;
};

}  // namespace colcast::engine

// The engine library's only exported symbol. The caller owns the engine.
extern "C" colcast::engine::Engine* ColcastCreateEngine(const colcast::engine::Options& options);

#endif  // COLCAST_SERVER_ENGINE_ENGINE_H_
