#include "server/wire/example_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using testing::HasSubstr;

ExampleFeature Make(std::string name, FeatureKind kind, DataType dtype,
                    std::vector<int64_t> shape = {}, std::string default_values = "") {
  ExampleFeature feature{std::move(name), kind, dtype, std::move(shape), std::move(default_values)};
  feature.required = kind == FeatureKind::kFixedLen && feature.default_values.empty();
  return feature;
}

Status Create(std::vector<ExampleFeature> features) {
  std::unique_ptr<const ExampleFeatures> result;
  return ExampleFeatures::Create(std::move(features), &result);
}

TEST(ExampleFeatures, AreFoundByName) {
  std::unique_ptr<const ExampleFeatures> features;
  ASSERT_TRUE(ExampleFeatures::Create({Make("age", FeatureKind::kFixedLen, DT_INT64, {2, 3}),
                                       Make("tags", FeatureKind::kVarLen, DT_STRING)},
                                      &features)
                  .ok());
  EXPECT_EQ(features->Find("tags"), 1u);
  EXPECT_EQ(features->Find("tag"), 2u);
  EXPECT_EQ((*features)[0].size, 6);
  EXPECT_EQ((*features)[0].length_name, "");
  EXPECT_EQ((*features)[1].length_name, "tags/length");
}

TEST(ExampleFeatures, UnsupportedFeaturesAreRefusedByName) {
  const FeatureKind fixed = FeatureKind::kFixedLen;
  const auto expect_refused = [](std::vector<ExampleFeature> features, const char* why) {
    const Status status = Create(std::move(features));
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message, HasSubstr("\"x\""));
    EXPECT_THAT(status.message, HasSubstr(why));
  };
  const ExampleFeature good = Make("x", fixed, DT_INT64);
  ASSERT_TRUE(Create({good}).ok());
  EXPECT_EQ(Create({}).code, StatusCode::kInvalidArgument);
  expect_refused({good, good}, "twice");
  expect_refused({Make("x", fixed, DT_RESOURCE)}, "DT_RESOURCE");
  expect_refused({Make("x", fixed, DT_INT64, {-1})}, "shape");
  expect_refused({Make("x", fixed, DT_INT64, {1 << 20, 2})}, "shape");
  expect_refused({Make("x", FeatureKind::kVarLen, DT_INT64, {2})}, "shape");
  expect_refused({Make("x", FeatureKind::kFixedLenSequence, DT_INT64, {0})}, "steps");
  expect_refused({Make("x", fixed, DT_INT64, {2}, Raw<int64_t>({1}))}, "1 default values");
  expect_refused({Make("x", fixed, DT_STRING, {}, StringRecord("a") + StringRecord("b"))},
                 "2 default values");
  expect_refused({Make("x", FeatureKind::kVarLen, DT_INT64, {}, Raw<int64_t>({1}))},
                 "1 default values");
}

}  // namespace
}  // namespace colcast
