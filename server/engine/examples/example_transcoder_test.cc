#include "server/engine/examples/example_transcoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace colcast::engine {
namespace {

using ::testing::HasSubstr;

// serving_default takes tf.Examples with the feature `age`; columnar takes the column `age`.
class ExampleTranscoderTest : public ::testing::Test {
 protected:
  ExampleTranscoderTest() {
    Declare("serving_default", "examples", tensorflow::DT_STRING, -1);
    Declare("columnar", "age", tensorflow::DT_INT64, -1);
    Declare("columnar_late", "age", tensorflow::DT_INT64, 1);
    converted_.columnar = "columnar";
    converted_.late = "columnar_late";
    converted_.source = "serving_default";
    converted_.source_input = "examples";
    ExampleFeature& age = converted_.features.emplace_back();
    age.name = "age";
    age.dtype = DT_INT64;
    age.required = true;
  }

  void Declare(const std::string& name, const std::string& input, tensorflow::DataType dtype,
               int64_t rows) {
    const auto set = [](const std::string& tensor, tensorflow::DataType type, int64_t dim,
                        tensorflow::TensorInfo* info) {
      info->set_name(tensor + ":0");
      info->set_dtype(type);
      info->mutable_tensor_shape()->add_dim()->set_size(dim);
    };
    tensorflow::SignatureDef& signature = signatures_[name];
    signature.Clear();
    set(input, dtype, rows, &(*signature.mutable_inputs())[input]);
    set("score", tensorflow::DT_FLOAT, -1, &(*signature.mutable_outputs())["score"]);
  }

  std::string WhyNot() {
    const auto made = ExampleTranscoder::Create(converted_, signatures_);
    return made.ok() ? "" : std::string(made.status().message());
  }

  SignatureDefs signatures_;
  RecordedSignatures converted_;
};

TEST_F(ExampleTranscoderTest, ItsSignaturesAreThoseTheExportWrote) {
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->source(), "serving_default");
  EXPECT_EQ((*made)->columnar(), "columnar");
  EXPECT_EQ((*made)->late(), "columnar_late");
}

TEST_F(ExampleTranscoderTest, ALateSignatureOfOtherColumnsIsNone) {
  Declare("columnar_late", "years", tensorflow::DT_INT64, 1);
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->late(), "");
}

TEST_F(ExampleTranscoderTest, TheFormerDefaultMayBeTheSource) {
  signatures_["serving_examples"] = signatures_["serving_default"];
  signatures_["serving_default"] = signatures_["columnar"];
  const auto made = ExampleTranscoder::Create(converted_, signatures_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->source(), "serving_examples");
}

TEST_F(ExampleTranscoderTest, ItSaysWhyItCannotAnswer) {
  Declare("columnar", "years", tensorflow::DT_INT64, -1);
  EXPECT_THAT(WhyNot(), HasSubstr("does not take the recorded columns"));
  Declare("serving_default", "examples", tensorflow::DT_INT64, -1);
  EXPECT_THAT(WhyNot(), HasSubstr("no signature \"serving_default\" with a vector of strings"));
  converted_.not_transcoded = "a parse within the graph";
  EXPECT_EQ(WhyNot(), "a parse within the graph");
}

}  // namespace
}  // namespace colcast::engine
