// What requests cost the engine one by one, joined, and split in slices; without queue and gRPC.
//
// Usage: batch_benchmark MODEL_DIRECTORY [no_stores]
//
//   For every line "alone FILES..." of the standard input it runs the requests one by one, for
//   "batch COUNT FILES..." so many together, for "slices ROWS FILES..." each in slices of so many
//   rows, one after the other on one thread. It prints the CPU milliseconds per request, decoding
//   included, and the largest difference of a float output to the request run alone afterwards. A
//   file holds a serialized PredictRequest. Every signature is joined and split, as with
//   --enable_batching.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "server/engine/benchmark_support.h"
#include "server/engine/engine.h"
#include "server/engine/model.h"
#include "server/wire/predict_request.h"

namespace colcast::engine {
namespace {

using Answers = std::vector<std::unique_ptr<Outputs>>;

double Difference(const Outputs& a, const Outputs& b) {
  double most = 0;
  for (size_t k = 0; k < a.columns().size(); ++k) {
    const OutputColumn& column = a.columns()[k];
    if (column.dtype != DT_FLOAT) continue;
    int64_t count = 1;
    for (const int64_t dim : column.dims) count *= dim;
    const auto* const x = static_cast<const float*>(column.data);
    const auto* const y = static_cast<const float*>(b.columns()[k].data);
    for (int64_t i = 0; i < count; ++i) most = std::max<double>(most, std::abs(x[i] - y[i]));
  }
  return most;
}

class Runs {
 public:
  Runs(const Model& model, const std::vector<std::string>& messages)
      : model_(model), messages_(messages), answers_(messages.size()) {
    rules_.any_signature = true;
  }

  const Answers& answers() const { return answers_; }

  void Alone() {
    DecodedRequest request;
    for (size_t i = 0; i < messages_.size(); ++i) {
      Decode(i, &request);
      Check(model_.Predict(request, &answers_[i]));
    }
  }

  void Together(size_t count) {
    std::deque<DecodedRequest> requests(count);
    for (size_t first = 0; first < messages_.size(); first += count) {
      std::vector<BatchMember> members(std::min(count, messages_.size() - first));
      for (size_t i = 0; i < members.size(); ++i) {
        Decode(first + i, &requests[i]);
        members[i].request = &requests[i];
      }
      model_.PredictBatch(rules_, &members);
      for (size_t i = 0; i < members.size(); ++i) {
        Check(members[i].status);
        answers_[first + i] = std::move(members[i].outputs);
      }
    }
  }

  void InSlices(int64_t rows) {
    DecodedRequest request;
    for (size_t i = 0; i < messages_.size(); ++i) {
      Decode(i, &request);
      const std::unique_ptr<Slices> slices = model_.Split(request, rules_);
      if (slices == nullptr) Die("a request is not to be cut");
      while (slices->rows_left() > 0) slices->Run(slices->Take(rows));
      Check(slices->Join(&answers_[i]));
    }
  }

 private:
  void Decode(size_t index, DecodedRequest* request) const {
    Check(DecodePredictRequest(Bytes(messages_[index]), request));
  }

  const Model& model_;
  const std::vector<std::string>& messages_;
  BatchRules rules_;
  Answers answers_;
};

void Measure(const Model& model, std::istringstream words) {
  std::string what;
  int64_t count = 1;
  words >> what;
  if (what != "alone") words >> count;
  std::vector<std::string> messages;
  for (std::string file; words >> file;) messages.push_back(ReadFile(file));
  if (messages.empty() || count < 1) Die("a line has no request");
  Runs runs(model, messages);
  const double start = CpuSeconds();
  if (what == "alone") runs.Alone();
  if (what == "batch") runs.Together(count);
  if (what == "slices") runs.InSlices(count);
  const double seconds = CpuSeconds() - start;
  Runs alone(model, messages);
  alone.Alone();
  double difference = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    difference = std::max(difference, Difference(*runs.answers()[i], *alone.answers()[i]));
  }
  std::printf("%.4f %.3g\n", 1000 * seconds / messages.size(), difference);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc < 2) Die("usage: batch_benchmark MODEL_DIRECTORY [no_stores]");
  Options options;
  if (argc > 2) options.user_state_bytes = options.item_state_bytes = 0;
  const std::unique_ptr<Engine> engine(ColcastCreateEngine(options));
  std::unique_ptr<Model> model;
  Check(engine->Load(argv[1], {"serve"}, &model));
  for (std::string line; std::getline(std::cin, line);) {
    Measure(*model, std::istringstream(line));
  }
  return 0;
}

}  // namespace
}  // namespace colcast::engine

int main(int argc, char** argv) { return colcast::engine::Main(argc, argv); }
