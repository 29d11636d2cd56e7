// What one request costs inside the engine: the graph alone on tensors that are ready, and the
// whole way from request bytes to response bytes. What the server needs above that is gRPC's.
//
// Usage: engine_benchmark MODEL_DIRECTORY SECONDS REQUEST_FILE...
//   A REQUEST_FILE holds a serialized PredictRequest; all ask for one signature and are taken in
//   turn: a request that is the only one finds its rows of every table in the cache. Prints one
//   line of JSON: CPU milliseconds per request, of all threads: TensorFlow parses tf.Examples on
//   one of its own.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/model.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"

namespace colcast::engine {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "engine_benchmark: %s\n", what.c_str());
  std::exit(1);
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// The median over slices of a twentieth of `seconds` each: shared machines are noisy.
double MillisecondsPerCall(double seconds, const std::function<void()>& call) {
  for (int i = 0; i < 20; ++i) call();
  std::vector<double> slices;
  for (int slice = 0; slice < 20; ++slice) {
    const double start = CpuSeconds();
    int calls = 0;
    double now = start;
    for (; now - start < seconds / 20; now = CpuSeconds()) {
      for (int i = 0; i < 10; ++i) call();
      calls += 10;
    }
    slices.push_back(1000 * (now - start) / calls);
  }
  std::nth_element(slices.begin(), slices.begin() + 10, slices.end());
  return slices[10];
}

void RunGraph(const SignatureRunner& runner, const std::vector<tensorflow::Tensor>& feeds) {
  RunResult result;
  const absl::Status status = runner.RunFeeds(feeds, runner.all_outputs(), &result);
  if (!status.ok()) Die(status.ToString());
}

void Predict(const TensorFlowModel& model, const std::string& message, PredictRequest* request,
             std::vector<uint8_t>* buffer) {
  Status status = DecodePredictRequest(Bytes(message), request);
  std::unique_ptr<Outputs> outputs;
  if (status.ok()) status = model.Predict(*request, &outputs);
  if (!status.ok()) Die(status.message);
  PredictResponse response;
  response.outputs = outputs->columns();
  buffer->resize(PredictResponseSize(response));
  WritePredictResponse(response, buffer->data());
}

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die(std::string("can not read ") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

const SignatureRunner& RunnerOf(const TensorFlowModel& model, const std::string& message) {
  PredictRequest request;
  Status status = DecodePredictRequest(Bytes(message), &request);
  if (!status.ok()) Die(status.message);
  const auto runner = model.FindRunner(request.model_spec().signature_name);
  if (!runner.ok()) Die(runner.status().ToString());
  return (*runner)->For(request);
}

std::vector<tensorflow::Tensor> FeedsOf(const SignatureRunner& runner, const std::string& message) {
  PredictRequest request;
  if (Status status = DecodePredictRequest(Bytes(message), &request); !status.ok()) {
    Die(status.message);
  }
  std::vector<tensorflow::Tensor> feeds;
  ExpansionStats stats;
  const absl::Status built = runner.BuildFeeds(request, &feeds, &stats);
  if (!built.ok()) Die(built.ToString());
  return feeds;
}

int Main(int argc, char** argv) {
  if (argc < 4) Die("usage: engine_benchmark MODEL_DIRECTORY SECONDS REQUEST_FILE...");
  const double seconds = std::atof(argv[2]);
  std::vector<std::string> messages;
  for (int i = 3; i < argc; ++i) messages.push_back(ReadFile(argv[i]));
  const auto model = TensorFlowModel::Load(argv[1], {"serve"}, Options());
  if (!model.ok()) Die(model.status().ToString());
  const SignatureRunner& runner = RunnerOf(**model, messages[0]);
  std::vector<std::vector<tensorflow::Tensor>> feeds;
  for (const std::string& message : messages) feeds.push_back(FeedsOf(runner, message));

  size_t turn = 0;
  const double graph =
      MillisecondsPerCall(seconds, [&] { RunGraph(runner, feeds[turn++ % feeds.size()]); });
  PredictRequest request;
  std::vector<uint8_t> buffer;
  const double predict = MillisecondsPerCall(
      seconds, [&] { Predict(**model, messages[turn++ % messages.size()], &request, &buffer); });
  std::printf("{\"graph_cpu_ms\": %.4f, \"predict_cpu_ms\": %.4f}\n", graph, predict);
  return 0;
}

}  // namespace
}  // namespace colcast::engine

int main(int argc, char** argv) { return colcast::engine::Main(argc, argv); }
