#include "server/engine/examples/transcoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/engine/program/testing.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRecord[] = R"({"format": 1, "signatures": {"columnar": {
    "source": "serving_default", "source_input": "examples", "example_transcoding": true,
    "late": {"signature": "columnar_late"}, "features": {
      "user": {"kind": "fixed_len", "dtype": "float32", "shape": [], "default": null, "side": "user", "used": true},
      "item": {"kind": "fixed_len", "dtype": "float32", "shape": [], "default": null, "side": "item", "used": true},
      "shop": {"kind": "fixed_len", "dtype": "float32", "shape": [], "default": null, "side": "item", "used": true},
      "candidate": {"kind": "fixed_len", "dtype": "float32", "shape": [], "default": null, "side": "item", "used": true}
    }}}})";

class TranscodingTest : public ::testing::Test {
 protected:
  void Load(ExampleTranscoding mode, const std::string& record = kRecord) {
    rapidjson::Document json;
    ASSERT_TRUE(ParseJson(record, &json));
    SignatureDefs signatures = model_.declared();
    tensorflow::SignatureDef& source = signatures["serving_default"];
    tensorflow::TensorInfo& input = (*source.mutable_inputs())["examples"];
    input.set_name("examples:0");
    input.set_dtype(tensorflow::DT_STRING);
    input.mutable_tensor_shape()->add_dim()->set_size(-1);
    *source.mutable_outputs() = signatures["columnar"].outputs();
    const auto find = [this](const std::string& name) -> const Programs* {
      return model_.declared().contains(name) ? &model_.programs(name) : nullptr;
    };
    transcoding_.Load(ReadRecordedSignatures(json), signatures, find, {}, mode);
  }

  // Answers Examples of these users and items; all other features are 0.
  bool Answer(const std::vector<std::pair<float, float>>& rows) {
    const TranscodedSignature* const signature = transcoding_.Find("");
    if (signature == nullptr) return false;
    DecodedRequest request;
    Column* const column = request.AddColumn("examples");
    column->dtype = DT_STRING;
    column->dims = {static_cast<int64_t>(rows.size())};
    for (const auto& [user, item] : rows) {
      tensorflow::Example example;
      auto& features = *example.mutable_features()->mutable_feature();
      const std::pair<const char*, float> values[] = {
          {"user", user}, {"item", item}, {"shop", 0}, {"candidate", 0}};
      for (const auto& [name, value] : values)
        features[name].mutable_float_list()->add_value(value);
      column->values.AddString(Bytes(request.Keep(example.SerializeAsString())));
    }
    RunResult result;
    if (!Transcoding::Answer(*signature, request, &result)) return false;
    EXPECT_TRUE(result.expansion.transcoded);
    EXPECT_EQ(result.expansion.rows, rows.size());
    const auto scores = result.tensors[0].flat<float>();
    scores_.assign(scores.data(), scores.data() + scores.size());
    return true;
  }

  const StagedModel model_{{}};
  Transcoding transcoding_;
  std::vector<float> scores_;
};

TEST_F(TranscodingTest, TheColumnarSignatureAnswersExamplesOfOneUser) {
  Load(ExampleTranscoding::kExact);
  ASSERT_TRUE(Answer({{2, 1}, {2, 3}}));
  EXPECT_THAT(scores_, ElementsAre(21, 23));
  EXPECT_THAT(model_.Ran("columnar"), ElementsAre("whole ok 1"));
  EXPECT_THAT(transcoding_.notes(), ElementsAre(HasSubstr("run by \"columnar\"")));
}

TEST_F(TranscodingTest, LateSignaturesComputeEachUserOnceInStages) {
  Load(ExampleTranscoding::kLate);
  ASSERT_TRUE(Answer({{2, 1}, {2, 3}}));
  ASSERT_TRUE(Answer({{2, 1}, {5, 1}, {2, 3}, {5, 3}}));
  EXPECT_THAT(scores_, ElementsAre(21, 51, 23, 53));
  EXPECT_THAT(model_.Ran(), ElementsAre("stages ok 2"));
  EXPECT_EQ(model_.Store("user").computed, 2);
}

TEST_F(TranscodingTest, ExamplesAreNotTranscodedWithoutARecord) {
  Load(ExampleTranscoding::kExact, R"({"signatures": {}})");
  EXPECT_FALSE(Answer({{1, 1}}));
  EXPECT_THAT(transcoding_.notes(), ElementsAre(HasSubstr("no export converted it")));
}

TEST_F(TranscodingTest, NothingIsReadAsColumnsIfTranscodingIsOff) {
  Load(ExampleTranscoding::kOff);
  EXPECT_EQ(transcoding_.Find(""), nullptr);
}

}  // namespace
}  // namespace colcast::engine
