// Measures the CPU time of the graph alone, run on prepared tensors, or of everything from a
// message to its outputs.
//
// Usage: engine_benchmark SESSION MODEL_DIRECTORY [off|exact|fast]
//   The last argument is the graph optimization; default: exact.
//   SESSION is `server`, the session as the server runs it; `plain`, TensorFlow's default executor
//   with one thread; or `predict`, everything from a message to its outputs, with state stores.
//
//   For every line "CALLS REQUEST_FILE..." of standard input, runs that many requests and prints
//   the CPU seconds of all threads (TensorFlow parses tf.Examples on a thread of its own). A file
//   holds a serialized PredictRequest and is read once. The files of a line are used in turn,
//   because a single repeated request would find its table rows in the CPU's cache.

#include <errno.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/engine/model.h"
#include "server/wire/predict_request.h"

namespace colcast::engine {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

void Check(const Status& status) {
  if (!status.ok()) Die(status.message);
}

// CPU time of all threads of the process.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A request's tensors, ready to be fed.
struct Prepared {
  const Signature* signature;
  std::vector<tensorflow::Tensor> feeds;
};

Prepared Prepare(const TensorFlowModel& model, const std::string& message) {
  DecodedRequest request;
  Check(DecodePredictRequest(Bytes(message), &request));
  const BatchRules rules;
  PlanPtr plan;
  Check(model.Plan(request, model.FindSignature(""), rules, &plan));
  Prepared prepared{&static_cast<const RequestPlan&>(*plan).programs->signature(), {}};
  ReceivedRequest received;
  absl::Status status = prepared.signature->Receive(request, &received);
  if (status.ok()) status = received.Plan(prepared.signature->inputs());
  if (status.ok()) {
    prepared.feeds.resize(received.columns.size());
    const SignatureInputs& inputs = prepared.signature->inputs();
    for (size_t i = 0; i < prepared.feeds.size() && status.ok(); ++i) {
      const int64_t rows =
          inputs.inputs()[i].batched() ? received.rows() : SignatureInputs::kAsSent;
      status = inputs.BuildRows(static_cast<int>(i), received.columns[i], rows, &prepared.feeds[i]);
    }
  }
  if (!status.ok()) Die(status.ToString());
  return prepared;
}

void RunGraph(const Prepared& request) {
  RunResult result;
  const Signature& signature = *request.signature;
  const absl::Status status = signature.RunFeeds(request.feeds, signature.all_outputs(), &result);
  if (!status.ok()) Die(status.ToString());
}

Options SessionOptions(const std::string& session) {
  Options options;
  if (session == "plain") {
    options.inter_op_parallelism = 1;
  } else if (session != "server" && session != "predict") {
    Die("no session called " + session);
  }
  return options;
}

GraphOptimization Optimization(const std::string& word) {
  if (word == "off") return GraphOptimization::kOff;
  if (word == "fast") return GraphOptimization::kFast;
  if (word != "exact") Die("no graph optimization called " + word);
  return GraphOptimization::kExact;
}

void RunAll(const TensorFlowModel& model, const std::string& message) {
  static DecodedRequest request;
  std::unique_ptr<Outputs> outputs;
  Check(DecodePredictRequest(Bytes(message), &request));
  Check(model.Predict(request, &outputs));
}

// Returns a function that runs a file's request.
std::function<void()> CallOf(const TensorFlowModel& model, const std::string& session,
                             const std::string& file) {
  const std::string message = ReadFile(file);
  if (session == "predict") return [&model, message] { RunAll(model, message); };
  return [prepared = Prepare(model, message)] { RunGraph(prepared); };
}

int Main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    Die("usage: engine_benchmark server|plain|predict MODEL_DIRECTORY [off|exact|fast]");
  }
  const std::string session = argv[1];
  Options options = SessionOptions(session);
  if (argc == 4) options.graph_optimization = Optimization(argv[3]);
  auto memories = std::make_shared<StateCaches>();
  if (session == "predict") {
    memories->user = std::make_unique<states::StateCache>(options.user_state_bytes);
    memories->item = std::make_unique<states::StateCache>(options.item_state_bytes);
  }
  const auto model = TensorFlowModel::Load(argv[2], {"serve"}, options, memories);
  if (!model.ok()) Die(model.status().ToString());
  for (const std::string& note : (*model)->description().notes) std::cerr << note << '\n';
  std::map<std::string, std::function<void()>> requests;  // keyed by file
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    int calls = 0;
    words >> calls;
    std::vector<const std::function<void()>*> turns;
    for (std::string file; words >> file;) {
      std::function<void()>& request = requests[file];
      if (!request) request = CallOf(**model, session, file);
      turns.push_back(&request);
    }
    if (turns.empty()) Die("a line has no request");

    const double start = CpuSeconds();
    for (int i = 0; i < calls; ++i) (*turns[i % turns.size()])();
    std::printf("%.9f\n", CpuSeconds() - start);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace colcast::engine

int main(int argc, char** argv) { return colcast::engine::Main(argc, argv); }
