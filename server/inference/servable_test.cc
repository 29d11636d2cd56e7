#include "server/inference/servable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "server/inference/testing.h"

namespace colcast::inference {
namespace {

using testing::HasSubstr;

constexpr char kSignatures[] = R"(
  signature_def { key: "serving_default" value { method_name: "tensorflow/serving/predict" } }
  signature_def { key: "classify" value { method_name: "tensorflow/serving/classify" } }
  signature_def { key: "train" value { method_name: "__saved_model_init_op" } })";

class ServableTest : public testing::Test {
 protected:
  const std::shared_ptr<const Servable> servable_ = MakeServable(3, kSignatures);
};

TEST_F(ServableTest, TheErrorForAnUnknownSignatureListsTheOthers) {
  const Signature* signature = servable_->Find("classify");
  ASSERT_NE(signature, nullptr);
  EXPECT_EQ(signature->def->method_name(), kClassifyMethodName);
  EXPECT_EQ(signature->number, 0);
  signature = servable_->Find("");
  ASSERT_NE(signature, nullptr);
  EXPECT_EQ(signature->name, "serving_default");
  EXPECT_EQ(signature->number, 1);
  EXPECT_EQ(servable_->Find("rank"), nullptr);
  const Status status = servable_->NoSignature("rank");
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message,
              HasSubstr("\"rank\"; the model has {classify, serving_default, train}"));
}

TEST_F(ServableTest, MethodNamesAreCheckedIfEnabled) {
  CallOptions check;
  check.check_method_names = true;
  const std::map<std::string, StatusCode> kCodes = {{"", StatusCode::kOk},
                                                    {"classify", StatusCode::kOk},
                                                    {"not there", StatusCode::kOk},
                                                    {"train", StatusCode::kInternal}};
  for (const auto& [name, code] : kCodes) {
    EXPECT_EQ(CheckMethodName(servable_->Find(name), check).code, code) << name;
    EXPECT_TRUE(CheckMethodName(servable_->Find(name), CallOptions()).ok()) << name;
  }
  EXPECT_THAT(CheckMethodName(servable_->Find("train"), check).message,
              HasSubstr("Was: \"__saved_model_init_op\""));
}

TEST(CreateServableTest, UnparsableSignaturesAreAnError) {
  std::shared_ptr<const Servable> servable;
  const Status status =
      Servable::Create("m", 3, std::make_unique<ModelWithoutGraph>("\xff"), &servable);
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_EQ(status.message, "the signatures of model \"m\" version 3 do not parse");
}

}  // namespace
}  // namespace colcast::inference
