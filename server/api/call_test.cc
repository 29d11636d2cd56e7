// Runs calls from receipt to answer with a fake codec, and checks what they count, log and send.
#include "server/api/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/inference/example_run.h"
#include "server/inference/testing.h"
#include "server/metrics/metrics.h"

namespace colcast::api {
namespace {

namespace fs = std::filesystem;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;
using testing::ElementsAre;

struct Sent {
  Status status;
  std::string answer;
};

// A transport that keeps the answer. `Base` is a codec class.
template <typename Base>
class FakeTransport : public Base {
 public:
  explicit FakeTransport(const char* api) : Base(Origin{}) {
    this->origin().api = api;
    this->origin().entrypoint = "GRPC";
    this->origin().client = 7;
  }
  bool cancelled() const override { return false; }
  Status CheckClientReads(scheduling::Clock::time_point) const override { return reads; }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (!status->ok()) answer.clear();
    record->request_bytes = 1000;
    record->response_bytes = answer.size();
  }
  void Send(const Status& status) override { sent->set_value({status, answer}); }
  size_t body_bytes() const override { return 0; }
  bool is_compressed() const override { return false; }
  Status ReadBody(Call*, size_t, bool*) override { return OkStatus(); }

  Status reads;
  std::string answer;
  std::shared_ptr<std::promise<Sent>> sent = std::make_shared<std::promise<Sent>>();
};

constexpr char kSignatures[] = R"(
  signature_def { key: "late" value {
    inputs { key: "item" value { name: "i:0" dtype: DT_FLOAT } }
    outputs { key: "outputs" value { name: "o:0" dtype: DT_FLOAT } } } }
  signature_def { key: "regress" value {
    inputs { key: "inputs" value { name: "e:0" dtype: DT_STRING } }
    outputs { key: "outputs" value { name: "o:0" dtype: DT_FLOAT } } } })";
const float kScores[] = {5, 6};

class FakeModel final : public inference::ModelWithoutGraph {
 public:
  FakeModel() : ModelWithoutGraph(inference::SerializedGraph(kSignatures)) {}

  Status Answer(const DecodedRequest&, std::unique_ptr<engine::Outputs>* outputs) const override {
    static const int64_t kDims[] = {2};
    auto made = std::make_unique<inference::GivenOutputs>();
    made->Add({"outputs", DT_FLOAT, Span<int64_t>(kDims, 1), kScores, nullptr});
    *outputs = std::move(made);
    return OkStatus();
  }
};

class FakeEngine final : public engine::Engine {
 public:
  Status LoadOpLibrary(const std::string&) const override { return OkStatus(); }
  Status Load(const std::string&, const std::vector<std::string>&,
              std::unique_ptr<engine::Model>* model) const override {
    *model = std::make_unique<FakeModel>();
    return OkStatus();
  }
};

class FakePredict final : public FakeTransport<PredictCodec> {
 public:
  FakePredict() : FakeTransport("Predict") {}
  Status Read(Call* call) override {
    Status status = call->FindServable(decoded.model_spec);
    if (status.ok()) call->FindSignature(decoded.model_spec.signature_name);
    return status;
  }
  void Describe(PredictCall*, scheduling::JobProfile*) override {}
  DecodedRequest& request() override { return decoded; }
  Status Write(const PredictResponse& response) override {
    answer = std::string(response.outputs[0].name);
    return written;
  }

  DecodedRequest decoded;
  Status written;
};

class FakeExamples final : public FakeTransport<ExamplesCodec> {
 public:
  FakeExamples() : FakeTransport("Regress") {}
  Status Read(Call* call) override {
    ModelSpec spec;
    spec.name = "m";
    Status status = call->FindServable(spec);
    if (status.ok()) call->FindSignature(inference::ModelSpecOf(asked).signature_name());
    return status;
  }
  const MultiInferenceRequest& tasks() const override { return asked; }
  const ExampleInput& input() const override { return examples; }
  Status Write(const MultiInferenceResponse& response) override {
    const auto& result = response.results(0).regression_result();
    answer = std::to_string(result.regressions_size());
    return OkStatus();
  }

  MultiInferenceRequest asked;
  ExampleInput examples;
};

class CallTest : public testing::Test {
 protected:
  CallTest() {
    fs::create_directories(base_path_ / "3");
    std::ofstream(base_path_ / "3" / "saved_model.pb") << "a graph without variables";
    models::ModelManager::Options options;
    options.models.resize(1);
    options.models[0].name = "m";
    options.models[0].base_path = base_path_.native();
    options.loader.memory_margin_fraction = -1;
    models_ = std::make_unique<models::ModelManager>(options, &engine_);
    EXPECT_TRUE(models_->Start().ok());
    backend_.models = models_.get();
    backend_.served = &models_->served();
    backend_.workers = &workers_;
    backend_.metrics = &metrics_;
    backend_.request_logs = &request_logs_;
  }
  ~CallTest() override {
    models_->Stop();
    fs::remove_all(base_path_);
  }

  std::unique_ptr<FakePredict> Predict(const std::string& model) {
    auto codec = std::make_unique<FakePredict>();
    codec->decoded.model_spec.name = model;
    codec->decoded.model_spec.signature_name = "late";
    return codec;
  }

  template <typename CallOf, typename CodecOf>
  Sent Answer(std::unique_ptr<CodecOf> codec) {
    auto sent = codec->sent;
    (new CallOf(std::move(codec), backend_))->Submit();
    return sent->get_future().get();
  }

  const fs::path base_path_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  FakeEngine engine_;
  std::unique_ptr<models::ModelManager> models_;
  metrics::Metrics metrics_;
  request_log::RequestLogs request_logs_{{}};
  scheduling::WorkerPool workers_{{}};
  Backend backend_;
};

TEST_F(CallTest, AnAnswerIsSentAndCountedWithItsLabels) {
  const Sent sent = Answer<PredictCall>(Predict("m"));
  EXPECT_TRUE(sent.status.ok()) << sent.status.message;
  EXPECT_EQ(sent.answer, "outputs");
  const metrics::RequestSeries series = metrics_.Requests().at(0);
  EXPECT_EQ(series.labels.model_name, "m");
  EXPECT_EQ(series.labels.signature_name, "late");
  EXPECT_EQ(series.labels.api, "Predict");
  EXPECT_EQ(series.labels.entrypoint, "GRPC");
  const auto sum_of = [&](const char* name) {
    return series.histograms[metrics::CallMetricIndex(name)].sum;
  };
  EXPECT_EQ(sum_of(":colcast:request_bytes"), 1000);
  EXPECT_EQ(sum_of(":colcast:response_bytes"), 7);
  EXPECT_EQ(sum_of(":colcast:run_requests"), 1);
  EXPECT_GT(sum_of(":colcast:request_latency_microseconds"), 0);
}

TEST_F(CallTest, AnUnknownModelIsNotALabel) {
  const Sent sent = Answer<PredictCall>(Predict("made up"));
  EXPECT_EQ(sent.status.code, StatusCode::kNotFound);
  const metrics::RequestSeries series = metrics_.Requests().at(0);
  EXPECT_EQ(series.labels.model_name, "");
  EXPECT_EQ(series.answered[static_cast<int>(StatusCode::kNotFound)], 1);
}

TEST_F(CallTest, AFailureToWriteTheAnswerIsSent) {
  auto codec = Predict("m");
  codec->written = ResourceExhausted("too long");
  const Sent sent = Answer<PredictCall>(std::move(codec));
  EXPECT_EQ(sent.status.message, "too long");
  EXPECT_EQ(sent.answer, "");
  const auto code = static_cast<size_t>(StatusCode::kResourceExhausted);
  EXPECT_EQ(metrics_.Requests().at(0).answered[code], 1);
}

TEST_F(CallTest, ADroppedCallReturnsTheReason) {
  auto codec = Predict("m");
  auto sent = codec->sent;
  (new PredictCall(std::move(codec), backend_))->Drop(scheduling::DropReason::kQueueFull);
  EXPECT_EQ(sent->get_future().get().status.code, StatusCode::kResourceExhausted);
}

TEST_F(CallTest, ACallIsRefusedIfTheClientsHostDoesNotReadAnswers) {
  auto codec = Predict("m");
  codec->reads = ResourceExhausted("answers are not read");
  EXPECT_EQ(Answer<PredictCall>(std::move(codec)).status.message, "answers are not read");
  auto examples = std::make_unique<FakeExamples>();
  examples->reads = ResourceExhausted("answers are not read");
  EXPECT_EQ(Answer<ExamplesCall>(std::move(examples)).status.message, "answers are not read");
  for (const auto& series : metrics_.Requests()) EXPECT_EQ(series.labels.model_name, "");
}

TEST_F(CallTest, ExamplesRunAndTheirRowsAreCounted) {
  auto codec = std::make_unique<FakeExamples>();
  tensorflow::serving::ModelSpec spec;
  spec.set_signature_name("regress");
  codec->asked = inference::OneTask(spec, inference::kRegressMethodName);
  codec->examples.examples = {Bytes("X"), Bytes("Y")};
  const Sent sent = Answer<ExamplesCall>(std::move(codec));
  EXPECT_TRUE(sent.status.ok()) << sent.status.message;
  EXPECT_EQ(sent.answer, "2");
  EXPECT_EQ(metrics_.Requests().at(0).labels.api, "Regress");
}

constexpr size_t kMaxBytes = 256 << 20;
constexpr size_t kMostForWorkers = 512 << 10;

// The pool of each read or run, and the read's limit in bytes (0 for a run).
using Reads = std::vector<std::pair<std::string, size_t>>;

std::string ThisPool() {
  char name[16];
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::string(name).substr(0, std::string(name).find_last_of('_'));
}

class FakeCodec final : public FakeTransport<Codec> {
 public:
  FakeCodec(size_t bytes, size_t inflated_bytes, Reads* reads)
      : FakeTransport("Predict"), bytes_(bytes), inflated_bytes_(inflated_bytes), reads_(*reads) {}

  Status Read(Call*) override { return OkStatus(); }

  size_t body_bytes() const override { return bytes_; }
  bool is_compressed() const override { return inflated_bytes_ != bytes_; }
  Status ReadBody(Call*, size_t max_bytes, bool* inflates_too_far) override {
    reads_.emplace_back(ThisPool(), max_bytes);
    *inflates_too_far = inflated_bytes_ > max_bytes;
    return *inflates_too_far ? ResourceExhausted("too long") : OkStatus();
  }

 private:
  const size_t bytes_, inflated_bytes_;
  Reads& reads_;
};

class FakeCall final : public Call {
 public:
  FakeCall(FakeCodec* codec, const Backend& backend, Reads* reads)
      : Call(codec, backend), codec_(codec), reads_(*reads) {}
  void Run(scheduling::Clock::duration, std::vector<scheduling::Taken>*) override {
    reads_.emplace_back("run by " + ThisPool(), 0);
    Answer(Unavailable("it ran"));
  }

 private:
  void GetMessages(Bytes*, Bytes*, std::string[2]) override {}

  const std::unique_ptr<FakeCodec> codec_;
  Reads& reads_;
};

// Reads a body of the given sizes, and records who read it and how the call ended.
struct Outcome {
  Outcome(size_t bytes, size_t inflated_bytes) {
    metrics::Metrics metrics;
    scheduling::WorkerPool workers({}), readers(ReaderOptions());
    Backend backend;
    backend.metrics = &metrics;
    backend.workers = &workers;
    backend.readers = &readers;
    auto* const codec = new FakeCodec(bytes, inflated_bytes, &reads);
    const auto sent = codec->sent;
    ReadAndRun(kMaxBytes, new FakeCall(codec, backend, &reads));
    message = sent->get_future().get().status.message;
  }

  Reads reads;
  std::string message;
};

TEST(BodyJobTest, AWorkerReadsAShortBodyAndRunsTheCall) {
  const std::pair<std::string, size_t> run = {"run by worker", 0};
  EXPECT_THAT(Outcome(1000, 1000).reads, ElementsAre(std::pair("worker", kMaxBytes), run));
  EXPECT_THAT(Outcome(1000, 2000).reads, ElementsAre(std::pair("worker", kMostForWorkers), run));
}

TEST(BodyJobTest, ALongBodyIsReadByAReader) {
  EXPECT_THAT(Outcome(1 << 20, 1 << 20).reads, ElementsAre(std::pair("body_reader", kMaxBytes),
                                                           std::pair("run by worker", size_t{0})));
}

TEST(BodyJobTest, AWorkerInflatesAtMostHalfAMegabyte) {
  const Outcome bomb(1000, kMaxBytes + 1);
  EXPECT_THAT(bomb.reads, ElementsAre(std::pair("worker", kMostForWorkers),
                                      std::pair("body_reader", kMaxBytes)));
  EXPECT_EQ(bomb.message, "too long");
  EXPECT_THAT(Outcome(1000, 100 << 20).reads,
              ElementsAre(std::pair("worker", kMostForWorkers), std::pair("body_reader", kMaxBytes),
                          std::pair("run by worker", size_t{0})));
}

}  // namespace
}  // namespace colcast::api
