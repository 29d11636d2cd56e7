#include "server/engine/record/row_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/wire/testing.h"

namespace colcast::engine {
namespace {

std::vector<RecordedSignatures> Read(const std::string& json) {
  rapidjson::Document record;
  ParseJson(json, &record);
  return ReadRecordedSignatures(record);
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kRecord[] = R"({"signatures": {"columnar": {
    "source": "serving_default", "source_input": "examples",
    "late": {"signature": "columnar_late"}, "parts": {"users_per_run": "many"},
    "features": {"words": {"kind": "var_len"}, "steps": {"kind": "fixed_len_sequence"},
                 "ids": {"kind": "ragged"}, "age": {"kind": "fixed_len"}},
    "independence": {
      "columnar": {"rows": true, "why_not": "", "own_length": ["words"]},
      "columnar_late": {"rows": true, "why_not": "", "own_length": []},
      "columnar_pair": {"rows": false, "why_not": "TopKV2 (model/top) mixes rows",
                        "own_length": ["ids"]}}}}})";

TEST(RowRecord, EachSignatureHasItsRecord) {
  const std::vector<RecordedSignatures> read = Read(kRecord);
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_EQ(read[0].columnar, "columnar");
  EXPECT_EQ(read[0].source, "serving_default");
  EXPECT_TRUE(read[0].many_users_per_run);
  const auto& rows = read[0].rows;
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_TRUE(rows.at("columnar").recorded);
  EXPECT_TRUE(rows.at("columnar").independent);
  EXPECT_FALSE(rows.at("columnar").any_rounding);
  EXPECT_TRUE(rows.at("columnar_late").any_rounding);
  EXPECT_TRUE(rows.at("columnar_pair").recorded);
  EXPECT_FALSE(rows.at("columnar_pair").independent);
  EXPECT_EQ(rows.at("columnar_pair").why_not, "TopKV2 (model/top) mixes rows");
  EXPECT_THAT(rows.at("columnar").lists, ElementsAre("words", "ids"));  // those with lengths
  EXPECT_THAT(rows.at("columnar").own_length, ElementsAre("words"));
  EXPECT_THAT(rows.at("columnar_late").own_length, IsEmpty());
  EXPECT_THAT(rows.at("columnar_pair").own_length, ElementsAre("ids"));
}

TEST(RowRecord, AnEarlierExportHasNoRowRecords) {
  const auto read = Read(R"({"signatures": {"columnar": {"parity":
      {"rows_independent": true}, "parts": {"users_per_run": "many"}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].rows, IsEmpty());
}

TEST(RowRecord, ADomainWithoutAStageKeepsItsColumns) {
  const auto read = Read(R"({"signatures": {"columnar": {
      "features": {"shop_id": {"side": "shop"}, "item_id": {"side": "item", "kind": "var_len"},
                   "position": {"side": "candidate"}, "distance": {"side": "item"}},
      "parts": {"domains": ["user", "item"],
                "context_features": ["shop_id", "position", "distance"]}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].stages, ElementsAre("user", "item"));
  EXPECT_THAT(read[0].columns, ElementsAre(Pair("item", ElementsAre("item_id", "item_id/length")),
                                           Pair("shop", ElementsAre("shop_id"))));
}

TEST(RowRecord, AFeatureNamedLikeLengthsStaysInItsDomain) {
  const auto read = Read(R"({"signatures": {"columnar": {
      "features": {"title": {"side": "item", "kind": "fixed_len"},
                   "title/length": {"side": "candidate", "kind": "fixed_len"}}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].columns, ElementsAre(Pair("item", ElementsAre("title"))));
}

TEST(RowRecord, OnlyTheJsonValueTrueMakesRowsIndependent) {
  for (const char* rows : {"1", "\"true\"", "null", "{}", "[true]"}) {
    const std::string json =
        std::string(R"({"signatures": {"s": {"independence": {"s": {"rows": )") + rows + "}}}}}";
    const auto read = Read(json);
    ASSERT_THAT(read, SizeIs(1)) << json;
    EXPECT_FALSE(read[0].rows.at("s").independent) << json;
  }
}

TEST(RowRecord, AFileThatNoExportWroteRecordsNothing) {
  for (const char* json : {"", "[]", "{", R"({"signatures": []})"}) {
    EXPECT_THAT(Read(json), IsEmpty()) << json;
  }
  EXPECT_THAT(ReadRecordedSignaturesOf("/nonexistent"), IsEmpty());
}

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
  return Read(Record(feature, R"("example_transcoding": true, )")).at(0).features.at(0);
}

TEST(ExampleRecord, ASignatureHasItsSourceLateSignatureAndFeaturesInOrder) {
  const auto signatures =
      Read(Record(Feature("b", "fixed_len", "int64", "2,3", "null") + "," +
                      Feature("a", "var_len", "string", "", "null"),
                  R"("example_transcoding": true, "late": {"signature": "columnar_late"}, )"));
  ASSERT_EQ(signatures.size(), 1u);
  const RecordedSignatures& signature = signatures[0];
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

TEST(ExampleRecord, ASourceThatTakesTensorsHasNoExampleInput) {
  const std::string feature = Feature("x", "whole", "int32", "", "null");
  const auto signatures =
      Read(absl::StrReplaceAll(Record(feature, R"("example_transcoding": "it takes tensors", )"),
                               {{R"("examples")", "null"}}));
  EXPECT_EQ(signatures.at(0).source_input, "");
}

TEST(ExampleRecord, DefaultsKeepAllBits) {
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

TEST(ExampleRecord, TheReasonNotToTranscodeIsKept) {
  const std::string feature = Feature("x", "fixed_len", "int64", "", "null");
  EXPECT_EQ(Read(Record(feature, R"("example_transcoding": "random", )"))[0].not_transcoded,
            "random");
  EXPECT_THAT(Read(Record(feature, ""))[0].not_transcoded, HasSubstr("export the model again"));
}

TEST(ExampleRecord, TheReasonNamesWhatNoExportWrites) {
  const std::string good =
      Record(Feature("x", "fixed_len", "float32", "", "[1.0]"), R"("example_transcoding": true, )");
  EXPECT_EQ(Read(good)[0].not_transcoded, "");
  const std::tuple<const char*, const char*, const char*> kChanges[] = {
      {"fixed_len", "unfixed", "\"x\""},
      {"float32", "float64", "\"x\""},
      {"[1.0]", "[\"1.0\"]", "\"x\""},
      {"[1.0]", "[NaN]", "\"x\""},
      {"\"shape\": []", "\"shape\": [1.5]", "\"x\""},
      {"source_input", "input", "source"}};
  for (const auto& [from, to, why] : kChanges) {
    EXPECT_THAT(Read(absl::StrReplaceAll(good, {{from, to}}))[0].not_transcoded, HasSubstr(why));
  }
}

RowRecord Rows(bool independent) {
  RowRecord record;
  record.recorded = true;
  record.independent = independent;
  return record;
}

// columnar, made from serving_default, has independent rows; columnar_other, made from other, does
// not.
class RecordsByNameTest : public testing::Test {
 protected:
  RecordsByNameTest() {
    for (const char* name : {"serving_default", "other", "columnar", "columnar_other"}) {
      (*signatures_[name].mutable_outputs())["score"].set_name(name);
    }
    records_.resize(2);
    records_[0].columnar = "columnar";
    records_[0].source = "serving_default";
    records_[0].rows["columnar"] = Rows(true);
    records_[1].columnar = "columnar_other";
    records_[1].source = "other";
    records_[1].rows["columnar_other"] = Rows(false);
  }

  // Like `colcast export --make-default`.
  void MakeDefault(const std::string& name) {
    signatures_["serving_examples"] = signatures_["serving_default"];
    signatures_["serving_default"] = signatures_[name];
  }

  std::map<std::string, bool> Independent() const {
    std::map<std::string, bool> independent;
    for (const auto& [name, record] : RecordsByName(records_, signatures_)) {
      independent[name] = record.independent;
    }
    return independent;
  }

  SignatureMap signatures_;
  std::vector<RecordedSignatures> records_;
};

TEST_F(RecordsByNameTest, ASourceHasTheRecordOfItsColumnarSignature) {
  EXPECT_THAT(Independent(), ElementsAre(Pair("columnar", true), Pair("columnar_other", false),
                                         Pair("other", false), Pair("serving_default", true)));
}

TEST_F(RecordsByNameTest, ASignatureThatOnlyHasAFormerDefaultsNameHasNoRecord) {
  signatures_["serving_examples"] = signatures_["other"];
  EXPECT_EQ(Independent().count("serving_examples"), 0);
}

TEST_F(RecordsByNameTest, ADefaultHasTheRecordOfTheSignatureThatItCopies) {
  MakeDefault("columnar_other");
  EXPECT_THAT(Independent(), ElementsAre(Pair("columnar", true), Pair("columnar_other", false),
                                         Pair("other", false), Pair("serving_default", false),
                                         Pair("serving_examples", true)));
}

TEST_F(RecordsByNameTest, ASourceIsDependentIfASignatureDependsOnListLengths) {
  records_[0].rows["columnar"].own_length = {"f"};
  EXPECT_TRUE(Independent()["columnar"]);
  EXPECT_FALSE(Independent()["serving_default"]);
  // Stages may answer Examples, so their lists count, too.
  records_[0].rows["columnar"].own_length.clear();
  EXPECT_TRUE(Independent()["serving_default"]);
  records_[0].rows["columnar_item"].own_length = {"f"};
  EXPECT_FALSE(Independent()["serving_default"]);
}

}  // namespace
}  // namespace colcast::engine
