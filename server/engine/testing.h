// A small model and requests to it, for the tests of this folder.
#ifndef COLCAST_SERVER_ENGINE_TESTING_H_
#define COLCAST_SERVER_ENGINE_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/programs.h"
#include "server/engine/program/whole_program.h"
#include "server/engine/rewrites/testing.h"
#include "server/engine/signature.h"
#include "server/wire/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// An input of a serialized PredictRequest.
inline std::string FloatInput(const std::string& name, const std::vector<uint64_t>& dims,
                              const std::vector<float>& values) {
  std::string shape;
  for (const uint64_t dim : dims) shape += BytesField(2, VarintField(1, dim));
  const std::string tensor =
      VarintField(1, DT_FLOAT) + BytesField(2, shape) + BytesField(5, Raw(values));
  return BytesField(2, BytesField(1, name) + BytesField(2, tensor));
}

inline std::string Int64Input(const std::string& name, const std::vector<int64_t>& values) {
  const std::string shape = BytesField(2, VarintField(1, values.size()));
  const std::string tensor =
      VarintField(1, DT_INT64) + BytesField(2, shape) + BytesField(4, Raw(values));
  return BytesField(2, BytesField(1, name) + BytesField(2, tensor));
}

// A request, kept with its bytes.
struct SentRequest {
  explicit SentRequest(std::string sent) : message(std::move(sent)) {
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
  }
  SentRequest(const SentRequest&) = delete;
  const std::string message;
  DecodedRequest request;
};

// The first input of a request.
struct SentInput : SentRequest {
  explicit SentInput(std::string sent) : SentRequest(std::move(sent)), input(request.columns()[0]) {
    EXPECT_TRUE(input.Check().ok());
  }
  Input input;
};

// A request and its plan.
struct SentPlan : SentRequest {
  SentPlan(const Programs& programs, std::string sent, const BatchRules* rules = nullptr)
      : SentRequest(std::move(sent)), status(programs.Plan(request, plan.get())) {
    plan->rules = rules;
    if (status.ok() && rules != nullptr) plan->profile = programs.ProfileOf(*plan, *rules);
  }
  const std::unique_ptr<RequestPlan, ReleasePlan> plan = RequestPlan::New();
  absl::Status status;
};

inline absl::Status RunRequest(const Programs& programs, const std::string& message,
                               RunResult* result) {
  const SentPlan request(programs, message);
  return request.status.ok() ? programs.Run(request.plan->batch, result) : request.status;
}

// The rows of the first output, one float each.
inline std::vector<float> FirstOutput(const Outputs& outputs) {
  const OutputColumn& column = outputs.columns()[0];
  const auto* const values = static_cast<const float*>(column.data);
  return {values, values + (column.dims.empty() ? 1 : column.dims[0])};
}

// Inputs user, item [N], list [N, L] and list/length. Outputs: score [N] = 10 * user + item, sum
// and mean [N] of a row's list, padding included, over [N] = the sum divided by the greatest
// length, total [1] and whole [] = the sum of all items, checked [N] = the items, which must be
// finite.
class ScoreModel {
 public:
  ScoreModel() {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto user = ops::Placeholder(scope.WithOpName("user"), tensorflow::DT_FLOAT);
    const auto item = ops::Placeholder(scope.WithOpName("item"), tensorflow::DT_FLOAT);
    const auto list = ops::Placeholder(scope.WithOpName("list"), tensorflow::DT_FLOAT);
    ops::Add(scope.WithOpName("score"), ops::Multiply(scope, user, 10.0f), item);
    ops::Sum(scope.WithOpName("sum"), list, 1);
    ops::Mean(scope.WithOpName("mean"), list, 1);
    const auto lengths = ops::Placeholder(scope.WithOpName("list/length"), tensorflow::DT_INT64);
    ops::Div(scope.WithOpName("over"), ops::Sum(scope, list, 1),
             ops::Cast(scope, ops::Max(scope, lengths, 0), tensorflow::DT_FLOAT));
    ops::Sum(scope.WithOpName("total"), item, 0, ops::Sum::KeepDims(true));
    ops::Sum(scope.WithOpName("whole"), item, 0);
    ops::CheckNumerics(scope.WithOpName("checked"), item, "a bad row");
    ops::Placeholder(scope.WithOpName("row_to_user"), tensorflow::DT_FLOAT);
    session_ = SessionOf(scope);
    Declare({"user", "item"}, {"score"});
  }

  // Replaces the signature.
  void Declare(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
               const Options& options = {}, const RowRecord& record = {}) {
    declared_.Clear();
    for (const std::string& name : inputs) {
      (*declared_.mutable_inputs())[name] = Info(name, -1, name == "list" ? 2 : 1);
    }
    for (const std::string& name : outputs) (*declared_.mutable_outputs())[name] = Info(name);
    programs_.reset();
    signature_ = *Signature::Create(declared_, session_.get(), options, record);
    programs_ = std::make_unique<Programs>("scores", *signature_, Programs::Others());
  }

  // Makes the signature score items for a user sent once, or for several users with row_to_user.
  void DeclareUsers(const Options& options = {}) {
    RowRecord record;
    record.recorded = record.independent = true;
    Declare({"user", "item"}, {"score"}, options, record);
    tensorflow::SignatureDef late = declared_;
    (*late.mutable_inputs())["user"].mutable_tensor_shape()->mutable_dim(0)->set_size(1);
    late_ = *Signature::Create(late, session_.get(), options, record);
    Programs::Others others;
    others.domains = std::make_unique<Domains>(late, std::vector<DomainColumns>{{"user", {"user"}}},
                                               signature_.get(), options);
    others.gathered =
        MakeGatheredProgram(signature_.get(), others.domains.get(), AnswerMode::kRequestPerUser);
    programs_ = std::make_unique<Programs>("late", *late_, std::move(others));
  }

  const Programs& programs() const { return *programs_; }

 private:
  std::unique_ptr<tensorflow::Session> session_;
  tensorflow::SignatureDef declared_;
  std::unique_ptr<Signature> signature_;
  std::unique_ptr<Signature> late_;
  std::unique_ptr<Programs> programs_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_TESTING_H_
