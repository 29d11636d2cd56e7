// Servables without TensorFlow, for tests.
#ifndef COLCAST_SERVER_INFERENCE_TESTING_H_
#define COLCAST_SERVER_INFERENCE_TESTING_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/inference/servable.h"

namespace colcast::inference {

// A model whose requests all fail. Tests derive classes that answer.
class ModelWithoutGraph : public engine::Model {
 public:
  // `signatures` is a serialized MetaGraphDef.
  explicit ModelWithoutGraph(std::string signatures = "")
      : description_{std::move(signatures), {}, {}} {}

  const engine::ModelDescription& description() const override { return description_; }
  Status Plan(const DecodedRequest& request, int signature, const engine::BatchRules&,
              engine::PlanPtr* plan) const override {
    if (signature < 0) return Error(StatusCode::kFailedPrecondition, "no such signature");
    Status status = Check(request);
    if (status.ok()) *plan = engine::PlanPtr(new Planned(&request, Profile(request)));
    return status;
  }
  Status Run(const engine::PlannedRequest& plan,
             std::unique_ptr<engine::Outputs>* outputs) const override {
    return Answer(RequestOf(plan), outputs);
  }
  void Run(std::vector<engine::BatchMember>* members) const override {
    for (engine::BatchMember& member : *members) {
      member.status = Answer(RequestOf(*member.plan), &member.outputs);
    }
  }

  virtual Status Check(const DecodedRequest&) const { return OkStatus(); }
  virtual engine::RequestProfile Profile(const DecodedRequest&) const { return {}; }
  virtual Status Answer(const DecodedRequest&, std::unique_ptr<engine::Outputs>*) const {
    return Internal("no graph");
  }

  static const DecodedRequest& RequestOf(const engine::PlannedRequest& plan) {
    return *static_cast<const Planned&>(plan).request;
  }

 private:
  struct Planned final : engine::PlannedRequest {
    Planned(const DecodedRequest* request, const engine::RequestProfile& known) : request(request) {
      profile = known;
      constexpr double kBytesOfARow = 16, kMost = 1e15;
      const double bytes = kBytesOfARow * static_cast<double>(profile.rows);
      profile.input_bytes = static_cast<int64_t>(std::min(bytes, kMost));
    }
    const DecodedRequest* const request;
  };

  const engine::ModelDescription description_;
};

// Outputs that a test fills in.
class GivenOutputs : public engine::Outputs {
 public:
  explicit GivenOutputs(std::vector<OutputColumn> given = {}) : given_(std::move(given)) {}
  const std::vector<OutputColumn>& columns() const override { return given_; }
  const engine::ExpansionStats& expansion() const override { return expansion_; }
  void Add(const OutputColumn& column) { given_.push_back(column); }

 private:
  std::vector<OutputColumn> given_;
  const engine::ExpansionStats expansion_;
};

// Parses a MetaGraphDef in text form and serializes it.
inline std::string SerializedGraph(const std::string& text) {
  tensorflow::MetaGraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph.SerializeAsString();
}

// A version of model "m". `signatures` is a MetaGraphDef in text form.
inline std::shared_ptr<const Servable> MakeServable(int64_t version,
                                                    const std::string& signatures = "") {
  std::shared_ptr<const Servable> servable;
  const Status status = Servable::Create(
      "m", version, std::make_unique<ModelWithoutGraph>(SerializedGraph(signatures)), &servable);
  EXPECT_TRUE(status.ok()) << status.message;
  return servable;
}

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_TESTING_H_
