// The entire interface between the server and TensorFlow.
//
// The server never links TensorFlow: it opens libcolcast_engine-RELEASE.so, which exports the one
// function at the end of this file, and talks to it through these plain types. Both sides are
// compiled by the same compiler against the same C++ standard library, so std types may cross. A
// virtual destructor lets the side that made an object free its memory.
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
#include "server/states/state_cache.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"

namespace colcast::engine {

// Whether graphs are rewritten when a model is loaded (server/engine/rewrites/README.md).
enum class GraphOptimization {
  kOff,
  kExact,  // only where outputs stay bit-identical
  kFast,   // plus the inexact rewrites that a choice file names, if there is one
};

// Which signature answers requests to a tf.Example signature that has exported columnar signatures
// (docs/late.md).
enum class ExampleTranscoding {
  kOff,    // the signature itself
  kExact,  // `columnar` or `columnar_exact`: bit-identical
  kLate,   // `columnar_late`, if all Examples have the same user
};

struct Options {
  // Threads that one operation may use, and threads for the operations of one request. With
  // inter_op_parallelism 0, a request's operations run one after the other on the calling thread.
  int intra_op_parallelism = 1;
  int inter_op_parallelism = 0;
  // A serialized tensorflow.ConfigProto for the sessions; the thread settings above override its
  // own. If empty, TensorFlow's defaults apply.
  std::string session_config;
  ExampleTranscoding example_transcoding = ExampleTranscoding::kExact;
  GraphOptimization graph_optimization = GraphOptimization::kExact;
  // A file written by `colcast tune --graphs`, or a folder of them; for kFast.
  std::string graph_choices;
  // Whether variables of at least map_tables_min_bytes that are used only for lookups stay in the
  // checkpoint's files (server/engine/mapping/README.md).
  bool map_tables = true;
  int64_t map_tables_min_bytes = int64_t{64} << 20;
  // Requests to these signatures fail with FAILED_PRECONDITION. Tables that only these signatures
  // read are not kept in memory.
  std::vector<std::string> unserved_signatures;
  // Limits per request. A request beyond one fails with RESOURCE_EXHAUSTED before any allocation.
  int64_t max_request_columns = 10'000;
  int64_t max_request_rows = 1 << 20;
  int64_t max_expanded_bytes = int64_t{1} << 30;  // what tensors may take beyond the bytes sent
  // Memory for the cached states of users and items, of all models together (docs/stages.md). 0
  // turns the cache off.
  int64_t user_state_bytes = int64_t{64} << 20;
  int64_t item_state_bytes = int64_t{64} << 20;
  LogSink log = WriteLog;  // the executable's function, so that its log queue and format apply
};

// What a request saves by sending columns once, and how much its tf.Examples repeat.
struct ExpansionStats {
  int64_t rows = 0;               // N, the number of candidates
  int64_t columns_sent_once = 0;  // sent with one row while others have N > 1
  int64_t bytes_saved = 0;        // bytes that N - 1 further rows would have added to the request
  bool transcoded = false;        // tf.Examples were read as columns
  int64_t repeated_bytes = 0;     // bytes of features that are the same in all its tf.Examples
};

// Statistics of one signature's state store (server/states/state_cache.h).
struct StoreStats {
  std::string signature;  // e.g. "columnar_late"
  states::StoreStats counted;
};

// How often a program answered requests to a signature, or failed to (docs/domains.md).
struct ProgramStats {
  std::string signature;
  std::string_view program;  // "whole", "exact", "stages", "rows", "gathered"
  std::string_view outcome;  // "ok", "failed"
  int64_t count = 0;
};

// One line on how a signature's graph was rewritten.
struct GraphChoice {
  std::string signature;
  std::string says;
};

struct ModelDescription {
  // A serialized tensorflow.MetaGraphDef that holds only the model's signatures.
  std::string signatures;
  std::vector<GraphChoice> graphs;  // the signatures whose graphs differ from the saved ones
  // Notes for the operator on how the model is served, one sentence each.
  std::vector<std::string> notes;
};

struct ModelStats {
  std::vector<StoreStats> stores;      // empty if no signature has one
  std::vector<ProgramStats> programs;  // only programs that ran
};

// A model's tables, and the bytes that stay mapped from its checkpoint's files.
struct TableMemory {
  struct Table {
    std::string name;           // name of the variable
    std::string why_in_memory;  // empty if it is mapped
    int64_t last_delta = 0;     // number of the last delta that changed it; 0 if none did
  };

  int64_t mapped = 0;
  int64_t resident = 0;  // bytes of `mapped` that are in the page cache
  int64_t checked = 0;   // bytes of `mapped` that were read and match the saved checksum
  std::string damage;    // the error of a damaged file; the model then answers DATA_LOSS
  std::vector<Table> tables;
  int64_t changed = 0;      // bytes of rows that deltas changed, which are in memory
  int64_t deltas = 0;       // number of applied deltas
  std::string delta_error;  // why the next delta is not applied
};

// The outputs of a request. Owns the memory to which `columns` points.
class Outputs {
 public:
  virtual ~Outputs() = default;
  virtual const std::vector<OutputColumn>& columns() const = 0;
  virtual const ExpansionStats& expansion() const = 0;
};

// How the operator allows requests to be joined and split.
struct BatchRules {
  // Whether to join, as TF Serving's batching does, also requests to signatures that no export
  // recorded, and requests whose scores this changes in the last bits. Rows recorded as dependent
  // are never joined (docs/domains.md).
  bool any_signature = false;
  // Whether lists of different lengths are padded to the longest one with the tensor's first value,
  // as in TF Serving; otherwise such requests run separately. Lists that have a length column, as
  // in exported signatures, are always padded.
  bool pad_variable_length_inputs = false;
  // Allowed row counts of a joined run, ascending. A run is padded to the next allowed count by
  // repeating rows. If empty, all counts are allowed.
  std::vector<int64_t> allowed_batch_sizes;
};

// What a scheduler knows about a request before it runs, derived from sizes alone.
struct RequestProfile {
  int64_t rows = 1;           // N, the number of candidates or Examples
  uint64_t group = 0;         // requests of one model with the same non-zero group may be joined
  bool can_be_split = false;  // Model::Split() may split it
  int64_t size = 0;           // the measure of run time, e.g. bytes of text; 0 means rows
  int64_t input_bytes = 0;    // of all input tensors, with one-row columns repeated; at most 1e15
};

// A request that its model has read once, for queue, run and answer. Made by Model::Plan().
class PlannedRequest {
 public:
  virtual ~PlannedRequest() = default;
  virtual void Release() { delete this; }  // called by the owner; may recycle the plan

  RequestProfile profile;
};
struct ReleasePlan {
  void operator()(PlannedRequest* plan) const { plan->Release(); }
};
using PlanPtr = std::unique_ptr<PlannedRequest, ReleasePlan>;

// One of several requests that run together.
struct BatchMember {
  const PlannedRequest* plan = nullptr;
  Status status;                     // set by the run
  std::unique_ptr<Outputs> outputs;  // set if `status` is OK
};

// A request that runs in slices of its rows. Any number of threads may take slices, and run
// different ones at the same time.
class Slices {
 public:
  virtual ~Slices() = default;

  virtual int64_t rows_left() const = 0;  // rows that are not yet in a slice

  // Makes a slice of about the next `rows` rows and returns its number, or -1 if no rows remain.
  // Calls with the same `rows` make slices of about the same size.
  virtual int Take(int64_t rows) = 0;

  virtual int64_t rows(int slice) const = 0;

  // Runs a slice on the calling thread; call once per slice. An error is kept for Join().
  virtual void Run(int slice) = 0;

  // Returns the outputs that Model::Run() would return. After an error other than
  // RESOURCE_EXHAUSTED the caller must run the request whole. REQUIRES all rows taken and run.
  virtual Status Join(std::unique_ptr<Outputs>* outputs) = 0;
};

struct StageRun {
  std::string_view stage;  // the domain's name; lives as long as the model
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
  int64_t rows = 0;   // rows whose states or scores were needed
  int64_t hits = -1;  // rows found in the cache; -1 if the stage has no cache
};

// Receives a report of each stage, on the thread that runs it.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnStage(const StageRun& run) = 0;
};

// A loaded version of a model. All methods may be called from any thread at any time.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelDescription& description() const = 0;

  // From now on, log lines about the model have its name and version. Call before the first
  // request.
  virtual void LogAs(const LogFields&) {}

  virtual ModelStats stats() const { return {}; }
  virtual TableMemory tables() const { return {}; }
  // TableMemory::damage. Cheap.
  virtual std::string damage() const { return {}; }

  // Reads a request and reports every error except invalid values, before allocating anything for
  // the request. `signature` is the position of the requested signature among those in
  // description(), sorted by name; -1 if the model does not have it. Error codes are those of TF
  // Serving: FAILED_PRECONDITION for an unknown signature, INVALID_ARGUMENT for wrong inputs and
  // outputs. Cheap enough to call for every queued request. `request` and `rules` must outlive the
  // plan.
  virtual Status Plan(const DecodedRequest& request, int signature, const BatchRules& rules,
                      PlanPtr* plan) const = 0;

  // Runs planned requests on the calling thread: together where that is sound and they fit,
  // otherwise one by one. An error in one request does not affect the others.
  virtual void Run(std::vector<BatchMember>* members) const = 0;

  virtual Status Run(const PlannedRequest& plan, std::unique_ptr<Outputs>* outputs) const = 0;

  // Plans and runs a single request.
  Status Predict(const DecodedRequest& request, int signature,
                 std::unique_ptr<Outputs>* outputs) const {
    const BatchRules rules;
    PlanPtr plan;
    Status status = Plan(request, signature, rules, &plan);
    return status.ok() ? Run(*plan, outputs) : status;
  }

  // While the result exists, runs on the calling thread read the tables as they are now.
  virtual std::shared_ptr<const void> PinTables() const { return nullptr; }

  // From now on, reports runs on the calling thread to `observer`; null turns the reports off.
  virtual void ObserveRuns(RunObserver*) const {}

  // Prepares a request for running in slices: computes once what all slices share, mainly the
  // user's states. Returns null if splitting is unsound, if there is nothing to split, or if values
  // are invalid, which Run() then reports. The plan must outlive the slices.
  virtual std::unique_ptr<Slices> Split(const PlannedRequest&) const { return nullptr; }
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Registers a library's ops for all models loaded from now on. Returns INVALID_ARGUMENT, with
  // path and reason, if the library cannot be loaded.
  virtual Status LoadOpLibrary(const std::string& path) const = 0;

  // Loads the SavedModel in `directory` (a version directory with saved_model.pb), using the
  // MetaGraph with exactly these `tags`. Searches the packages installed beside TensorFlow for ops
  // that TensorFlow lacks; if none has an op, the error names the package to install, if known.
  virtual Status Load(const std::string& directory, const std::vector<std::string>& tags,
                      std::unique_ptr<Model>* model) const = 0;
};

}  // namespace colcast::engine

// The engine library's only exported symbol. The caller owns the engine.
extern "C" colcast::engine::Engine* ColcastCreateEngine(const colcast::engine::Options& options);

#endif  // COLCAST_SERVER_ENGINE_ENGINE_H_
