#include "server/engine/record/export_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/wire/testing.h"

namespace colcast::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One signature with these features, as the exporter writes it; `more` precedes them.
std::string Record(std::string_view features, std::string_view more) {
  return absl::StrCat(R"({"format": 1, "signatures": {"columnar": {"source": "serving_default",
      "source_input": "examples", )",
                      more, R"("features": {)", features, "}}}}");
}

std::string Feature(std::string_view name, std::string_view kind, std::string_view dtype,
                    std::string_view shape, std::string_view values) {
  return absl::StrCat("\"", name, R"(": {"kind": ")", kind, R"(", "dtype": ")", dtype,
                      R"(", "shape": [)", shape, R"(], "default": )", values,
                      R"(, "side": "user", "used": true})");
}

ExampleFeature ReadOne(const std::string& feature) {
  const auto signatures = ReadExportRecord(Record(feature, R"("example_transcoding": true, )"));
  EXPECT_TRUE(signatures.ok()) << signatures.status();
  return signatures->at(0).features.at(0);
}

TEST(ExportRecord, ASignatureHasItsSourceItsLateFormAndItsFeaturesInOrder) {
  const auto signatures = ReadExportRecord(
      Record(Feature("b", "fixed_len", "int64", "2,3", "null") + "," +
                 Feature("a", "var_len", "string", "", "null"),
             R"("example_transcoding": true, "late": {"signature": "columnar_late"}, )"));
  ASSERT_TRUE(signatures.ok()) << signatures.status();
  ASSERT_EQ(signatures->size(), 1u);
  const ConvertedSignature& signature = signatures->at(0);
  EXPECT_EQ(signature.columnar, "columnar");
  EXPECT_EQ(signature.late, "columnar_late");
  EXPECT_EQ(signature.source, "serving_default");
  EXPECT_EQ(signature.source_input, "examples");
  EXPECT_EQ(signature.not_transcoded, "");
  ASSERT_EQ(signature.features.size(), 2u);
  EXPECT_EQ(signature.features[0].name, "b");
  EXPECT_THAT(signature.features[0].shape, ElementsAre(2, 3));
  EXPECT_TRUE(signature.features[0].required);
  EXPECT_TRUE(signature.features[0].user);
  EXPECT_EQ(signature.features[1].kind, FeatureKind::kVarLen);
  EXPECT_FALSE(signature.features[1].required);
}

TEST(ExportRecord, ASignatureWhoseSourceTakesTensorsIsLeftOut) {
  const std::string feature = Feature("x", "whole", "int32", "", "null");
  const auto signatures = ReadExportRecord(
      absl::StrReplaceAll(Record(feature, R"("example_transcoding": "it takes tensors", )"),
                          {{R"("examples")", "null"}}));
  ASSERT_TRUE(signatures.ok()) << signatures.status();
  EXPECT_THAT(*signatures, IsEmpty());
}

TEST(ExportRecord, DefaultsKeepAllBits) {
  EXPECT_EQ(ReadOne(Feature("x", "fixed_len", "int64", "", "[9007199254740993]")).default_values,
            Raw<int64_t>({9007199254740993}));
  EXPECT_EQ(ReadOne(Feature("x", "fixed_len", "float32", "2", "[0.10000000149011612, -0.0]"))
                .default_values,
            Raw<float>({0.1f, -0.0f}));
  EXPECT_EQ(ReadOne(Feature("x", "fixed_len", "float32", "", "[-Infinity]")).default_values,
            Raw<float>({-INFINITY}));
  EXPECT_EQ(ReadOne(Feature("x", "fixed_len", "string", "", R"(["gr\u00f6\u00dfe\u0000"])"))
                .default_values,
            StringRecord(std::string_view("gr\xc3\xb6\xc3\x9f\x65\0", 8)));
  EXPECT_EQ(ReadOne(Feature("x", "fixed_len", "string", "", R"([{"hex": "ff00"}])")).default_values,
            StringRecord(std::string_view("\xff\0", 2)));
}

TEST(ExportRecord, TheReasonNotToTranscodeIsKept) {
  const std::string feature = Feature("x", "fixed_len", "int64", "", "null");
  const auto refused = ReadExportRecord(Record(feature, R"("example_transcoding": "random", )"));
  EXPECT_EQ(refused->at(0).not_transcoded, "random");
  const auto old = ReadExportRecord(Record(feature, ""));
  EXPECT_THAT(old->at(0).not_transcoded, HasSubstr("export the model again"));
}

TEST(ExportRecord, WhatNoExportWritesIsAnError) {
  const std::string good =
      Record(Feature("x", "fixed_len", "float32", "", "[1.0]"), R"("example_transcoding": true, )");
  ASSERT_TRUE(ReadExportRecord(good).ok());
  const auto changed = [&good](const char* from, const char* to) {
    return ReadExportRecord(absl::StrReplaceAll(good, {{from, to}})).status().ToString();
  };
  EXPECT_THAT(changed("fixed_len", "unfixed"), HasSubstr("\"x\""));
  EXPECT_THAT(changed("float32", "float64"), HasSubstr("\"x\""));
  EXPECT_THAT(changed("[1.0]", "[\"1.0\"]"), HasSubstr("\"x\""));
  EXPECT_THAT(changed("[1.0]", "[NaN]"), HasSubstr("\"x\""));
  EXPECT_THAT(changed("\"shape\": []", "\"shape\": [1.5]"), HasSubstr("\"x\""));
  EXPECT_THAT(changed("source_input", "input"), HasSubstr("source"));
  EXPECT_THAT(changed("}}}}", ""), HasSubstr("JSON"));
  EXPECT_FALSE(ReadExportRecord("[]").ok());
}

TEST(ExportRecord, AModelWithoutTheFileHasNone) {
  const auto signatures = ReadExportRecordOf("/nonexistent");
  ASSERT_TRUE(signatures.ok());
  EXPECT_THAT(*signatures, IsEmpty());
}

}  // namespace
}  // namespace colcast::engine
