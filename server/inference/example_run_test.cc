// Runs Classify, Regress and MultiInference on a fake model. Checks which signatures are accepted,
// how the model is called, and how its outputs are converted.
#include "server/inference/example_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/inference/testing.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::InferenceResult;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSignatures[] = R"(
  signature_def { key: "serving_default" value {
    inputs { key: "inputs" value { name: "examples:0" dtype: DT_STRING } }
    outputs { key: "classes" value { name: "c:0" } }
    outputs { key: "scores" value { name: "s:0" } }
    method_name: "tensorflow/serving/classify" } }
  signature_def { key: "regress" value {
    inputs { key: "inputs" value { name: "examples:0" dtype: DT_STRING } }
    outputs { key: "outputs" value { name: "r:0" } }
    method_name: "tensorflow/serving/regress" } }
  signature_def { key: "elsewhere" value {
    inputs { key: "inputs" value { name: "others:0" dtype: DT_STRING } }
    outputs { key: "outputs" value { name: "e:0" } } } }
  signature_def { key: "columnar" value {
    inputs { key: "age" value { name: "a:0" dtype: DT_INT64 } }
    outputs { key: "outputs" value { name: "r:0" } } } })";

struct GivenAnswer {
  DataType dtype;
  std::vector<int64_t> dims;
  std::vector<float> floats;
  std::vector<std::string> strings;
};

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const std::string*>(data)[index];
}

// Records its calls as "signature: outputs < examples", and answers from a table.
class FakeModel final : public ModelWithoutGraph {
 public:
  FakeModel() : ModelWithoutGraph(SerializedGraph(kSignatures)) {}

  Status Answer(const DecodedRequest& request,
                std::unique_ptr<engine::Outputs>* outputs) const override {
    std::string text = request.model_spec.signature_name + ':';
    auto made = std::make_unique<GivenOutputs>();
    for (const std::string_view name : request.output_filter) {
      text += ' ' + std::string(name);
      const GivenAnswer& answer = answers.find(name)->second;
      const bool strings = answer.dtype == DT_STRING;
      made->Add({name, answer.dtype, answer.dims,
                 strings ? static_cast<const void*>(answer.strings.data()) : answer.floats.data(),
                 StringAt});
    }
    text += " <";
    for (const Bytes& example : request.Find("inputs")->values.strings) {
      text += ' ' + example.ToString();
    }
    asked.push_back(text);
    *outputs = std::move(made);
    return OkStatus();
  }

  std::map<std::string, GivenAnswer, std::less<>> answers;
  mutable std::vector<std::string> asked;
};

class ExampleRunTest : public testing::Test {
 protected:
  ExampleRunTest() {
    auto model = std::make_unique<FakeModel>();
    model_ = model.get();
    model_->answers["classes"] = {DT_STRING, {2, 2}, {}, {"a", "b", "c", "d"}};
    model_->answers["scores"] = {DT_FLOAT, {2, 2}, {1, 2, 3, 4}, {}};
    model_->answers["outputs"] = {DT_FLOAT, {2, 1}, {5, 6}, {}};
    EXPECT_TRUE(Servable::Create("m", 7, std::move(model), &servable_).ok());
    input_.examples = {Bytes("X"), Bytes("Y")};
  }

  Status DoClassify(const std::string& signature) {
    return DoMultiInference({{"classify", signature}});
  }

  Status DoRegress(const std::string& signature) {
    return DoMultiInference({{"regress", signature}});
  }

  // Each task is {method, signature}.
  Status DoMultiInference(const std::vector<std::pair<std::string, std::string>>& tasks) {
    MultiInferenceRequest request;
    for (const auto& [method, signature] : tasks) {
      auto* const task = request.add_tasks();
      task->mutable_model_spec()->set_name("m");
      task->mutable_model_spec()->set_signature_name(signature);
      task->set_method_name("tensorflow/serving/" + method);
    }
    results_.Clear();
    return Run(request);
  }

  // Looks up the first task's signature, as callers do, and runs the request.
  Status Run(const MultiInferenceRequest& request) {
    const Signature* const first = servable_->Find(ModelSpecOf(request).signature_name());
    return RunExamples(*servable_, first, request, input_, options_, &results_, &record_);
  }

  FakeModel* model_;
  std::shared_ptr<const Servable> servable_;
  ExampleInput input_;
  CallOptions options_;
  metrics::CallRecord record_;
  MultiInferenceResponse results_;
};

TEST_F(ExampleRunTest, ResourcesAreReservedBeforeARun) {
  scheduling::WorkerPool::Options options;
  options.memory.max_bytes = 10'000;
  scheduling::WorkerPool workers(options);
  const auto outcome = [&](const std::function<Status()>& ask) -> std::string {
    model_->asked.clear();
    RunGate gate(&workers);
    options_.gate = &gate;
    const Status status = ask();
    EXPECT_EQ(model_->asked.empty(), !status.ok());
    return gate.must_wait() ? "later" : status.ok() ? "now" : status.message;
  };
  const auto expect_of_all = [&](const std::string& expected) {
    EXPECT_THAT(outcome([&] { return DoClassify("serving_default"); }), HasSubstr(expected));
    EXPECT_THAT(outcome([&] { return DoRegress("regress"); }), HasSubstr(expected));
    EXPECT_THAT(outcome([&] {
                  return DoMultiInference({{"classify", ""}, {"regress", "regress"}});
                }),
                HasSubstr(expected));
  };
  expect_of_all("now");
  {
    scheduling::WorkerPool::Share taken;
    ASSERT_EQ(workers.Reserve({9'900, {}}, &taken), scheduling::RunBudget::Answer::kYes);
    expect_of_all("later");
  }
  const std::string long_example(10'000, 'X');
  input_.examples[0] = Bytes(long_example);
  expect_of_all("--max_run_bytes is 10000");
}

TEST_F(ExampleRunTest, ClassifyReturnsLabelsAndScoresPerExample) {
  ASSERT_TRUE(DoClassify("").ok());
  EXPECT_THAT(model_->asked, ElementsAre("serving_default: classes scores < X Y"));
  const InferenceResult& result = results_.results(0);
  ASSERT_EQ(result.classification_result().classifications_size(), 2);
  const auto& second = result.classification_result().classifications(1);
  EXPECT_EQ(second.classes(0).label(), "c");
  EXPECT_EQ(second.classes(1).score(), 4);
  EXPECT_EQ(result.model_spec().name(), "m");
  EXPECT_EQ(result.model_spec().signature_name(), "serving_default");
  EXPECT_EQ(result.model_spec().version().value(), 7);
}

TEST_F(ExampleRunTest, RegressReturnsAValuePerExample) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2}, {2, 1}}) {
    model_->answers["outputs"].dims = dims;
    ASSERT_TRUE(DoRegress("regress").ok());
    ASSERT_EQ(results_.results(0).regression_result().regressions_size(), 2);
    EXPECT_EQ(results_.results(0).regression_result().regressions(1).value(), 6);
  }
}

TEST_F(ExampleRunTest, TheContextIsPrependedToEachExample) {
  input_.context = "\x12\x01\x43";  // an unknown field
  ASSERT_TRUE(DoRegress("regress").ok());
  EXPECT_THAT(model_->asked, ElementsAre("regress: outputs < \x12\x01\x43X \x12\x01\x43Y"));
  input_.context = "?";
  EXPECT_THAT(DoRegress("regress").message, HasSubstr("its context of 1 bytes is not"));
  options_.max_expanded_bytes = 1;
  const Status status = DoRegress("regress");
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("max_expanded_bytes"));
}

TEST_F(ExampleRunTest, ErrorsDescribeUnsuitableSignatures) {
  const struct {
    Status status;
    const char* words;
  } kCases[] = {
      {DoClassify("no"), "No signature was found with the name: \"no\"; the model has {columnar, "},
      {DoClassify("regress"), "Found: {outputs}"},
      {DoClassify("columnar"),
       "No classification inputs found in SignatureDef: expected one "
       "input, \"inputs\", that takes serialized tf.Examples; found {age}"},
      {DoRegress(""), "expected one output, \"outputs\"; found {classes, scores}"},
      {DoRegress("columnar"), "No regression inputs"},
  };
  for (const auto& [status, words] : kCases) {
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message, HasSubstr(words));
  }
  options_.check_method_names = true;
  EXPECT_TRUE(DoRegress("regress").ok());
  EXPECT_EQ(DoRegress("elsewhere").message,
            "Expected regression signature method_name to be tensorflow/serving/regress. Was: ");
  input_.examples.clear();
  EXPECT_THAT(DoRegress("regress").message, HasSubstr("Input is empty"));
}

TEST_F(ExampleRunTest, OutputsOfAWrongShapeOrDtypeAreRefused) {
  const struct {
    const char* output;
    GivenAnswer answer;
    const char* words;
  } kCases[] = {
      {"outputs", {DT_FLOAT, {3}, {1, 2, 3}, {}}, "did not match output batch size: 2 vs. 3"},
      {"outputs", {DT_FLOAT, {2, 2}, {1, 2, 3, 4}, {}}, "[batch_size, 1] but got [2,2]"},
      {"outputs", {DT_STRING, {2}, {}, {"a", "b"}}, "DT_FLOAT. Got: DT_STRING"},
      {"classes", {DT_STRING, {2}, {}, {"a", "b"}}, "[batch_size num_classes] but got [2]"},
      {"classes", {DT_FLOAT, {2, 1}, {1, 2}, {}}, "classes Tensor of DT_STRING. Got: DT_FLOAT"},
      {"scores", {DT_FLOAT, {1, 2}, {1, 2}, {}}, "scores output batch size of 2. Got: 1"},
      {"scores", {DT_FLOAT, {2, 1}, {1, 2}, {}}, "should match in dim_size(1). Got 2 vs. 1"},
  };
  for (const auto& [output, answer, words] : kCases) {
    const GivenAnswer before = std::exchange(model_->answers[output], answer);
    const Status status = output == std::string("outputs") ? DoRegress("regress") : DoClassify("");
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message, HasSubstr(words));
    model_->answers[output] = before;
  }
}

TEST_F(ExampleRunTest, EachTaskRunsOnce) {
  ASSERT_TRUE(DoMultiInference({{"classify", ""}, {"regress", "regress"}}).ok());
  EXPECT_THAT(model_->asked,
              ElementsAre("serving_default: classes scores < X Y", "regress: outputs < X Y"));
  ASSERT_EQ(results_.results_size(), 2);
  EXPECT_EQ(results_.results(0).classification_result().classifications(0).classes(0).label(), "a");
  EXPECT_EQ(results_.results(1).regression_result().regressions(0).value(), 5);
  EXPECT_EQ(results_.results(1).model_spec().signature_name(), "regress");
}

TEST_F(ExampleRunTest, TheFirstTasksSignatureIsNotLookedUpAgain) {
  MultiInferenceRequest request = OneTask({}, kRegressMethodName);
  request.mutable_tasks(0)->mutable_model_spec()->set_signature_name("looked up before");
  const Signature* const first = servable_->Find("regress");
  ASSERT_TRUE(RunExamples(*servable_, first, request, input_, options_, &results_, &record_).ok());
  EXPECT_EQ(results_.results(0).model_spec().signature_name(), "regress");
}

TEST_F(ExampleRunTest, ContradictoryTasksAreRefused) {
  EXPECT_EQ(DoMultiInference({{"regress", "regress"}, {"regress", "regress"}}).message,
            "Duplicate evaluation of signature: regress");
  EXPECT_EQ(DoMultiInference({{"predict", "regress"}}).code, StatusCode::kUnimplemented);
  MultiInferenceRequest request;
  request.add_tasks()->mutable_model_spec()->set_name("m");
  request.add_tasks()->mutable_model_spec()->set_name("n");
  EXPECT_THAT(Run(request).message,
              HasSubstr("must access the same model name. Found \"m\" and \"n\""));
}

}  // namespace
}  // namespace colcast::inference
