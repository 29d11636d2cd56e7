// What one request costs inside the engine: the graph alone on tensors that are ready, and the
// whole way from request bytes to response bytes. What the server needs above that is gRPC's.
//
// Usage: engine_benchmark MODEL_DIRECTORY REQUEST_FILE [SECONDS]
//   REQUEST_FILE holds a serialized PredictRequest. Prints one line of JSON: CPU milliseconds of
//   the calling thread per request.

#include <sys/resource.h>

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
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
         1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
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

int Main(int argc, char** argv) {
  if (argc < 3) Die("usage: engine_benchmark MODEL_DIRECTORY REQUEST_FILE [SECONDS]");
  const double seconds = argc > 3 ? std::atof(argv[3]) : 2;
  std::ifstream file(argv[2], std::ios::binary);
  if (!file) Die(std::string("can not read ") + argv[2]);
  const std::string message((std::istreambuf_iterator<char>(file)), {});
  const auto model = TensorFlowModel::Load(argv[1], {"serve"}, Options());
  if (!model.ok()) Die(model.status().ToString());
  PredictRequest request;
  if (Status status = DecodePredictRequest(Bytes(message), &request); !status.ok()) {
    Die(status.message);
  }
  const auto runner = (*model)->FindRunner(request.model_spec().signature_name);
  if (!runner.ok()) Die(runner.status().ToString());
  std::vector<tensorflow::Tensor> feeds;
  ExpansionStats stats;
  if (absl::Status status = (*runner)->BuildFeeds(request, &feeds, &stats); !status.ok()) {
    Die(status.ToString());
  }
  std::vector<uint8_t> buffer;
  const double graph = MillisecondsPerCall(seconds, [&] { RunGraph(**runner, feeds); });
  const double predict =
      MillisecondsPerCall(seconds, [&] { Predict(**model, message, &request, &buffer); });
  std::printf("{\"graph_cpu_ms\": %.4f, \"predict_cpu_ms\": %.4f}\n", graph, predict);
  return 0;
}

}  // namespace
}  // namespace colcast::engine

int main(int argc, char** argv) { return colcast::engine::Main(argc, argv); }
