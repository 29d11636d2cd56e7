#include "server/engine/record/row_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace colcast::engine {
namespace {

TEST(RecordedJsonTest, TheRecordLiesBesideTheModel) {
  const std::string directory = ::testing::TempDir() + "/recorded_json_test";
  std::filesystem::remove_all(directory);
  std::string text;
  EXPECT_FALSE(ReadRecordFile(directory, &text));
  std::filesystem::create_directories(directory + "/assets.extra");
  std::ofstream(directory + "/assets.extra/colcast.json") << "{}";
  ASSERT_TRUE(ReadRecordFile(directory, &text));
  EXPECT_EQ(text, "{}");
}

using ::testing::ElementsAre;
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

TEST(RowRecord, EachSignatureHasWhatIsRecordedOfIt) {
  const std::vector<RecordedSignatures> read = ReadRowRecords(kRecord);
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
}

TEST(RowRecord, OnlyFeaturesWithLengthsAreLists) {
  EXPECT_THAT(ReadRowRecords(kRecord)[0].rows.at("columnar").lists, ElementsAre("words", "ids"));
}

TEST(RowRecord, EachSignatureHasItsOwnLists) {
  const auto rows = ReadRowRecords(kRecord)[0].rows;
  EXPECT_THAT(rows.at("columnar").own_length, ElementsAre("words"));
  EXPECT_THAT(rows.at("columnar_late").own_length, IsEmpty());
  EXPECT_THAT(rows.at("columnar_pair").own_length, ElementsAre("ids"));
}

TEST(RowRecord, OfAnEarlierExportNothingIsKnown) {
  const auto read = ReadRowRecords(R"({"signatures": {"columnar": {"parity":
      {"rows_independent": true}, "parts": {"users_per_run": "many"}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].rows, IsEmpty());
}

TEST(RowRecord, ADomainWithoutAStageHasItsColumns) {
  const auto read = ReadRowRecords(R"({"signatures": {"columnar": {
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
  const auto read = ReadRowRecords(R"({"signatures": {"columnar": {
      "features": {"title": {"side": "item", "kind": "fixed_len"},
                   "title/length": {"side": "candidate", "kind": "fixed_len"}}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].columns, ElementsAre(Pair("item", ElementsAre("title"))));
}

TEST(RowRecord, OnlyTheWordTrueMakesRowsIndependent) {
  for (const char* rows : {"1", "\"true\"", "null", "{}", "[true]"}) {
    const std::string json =
        std::string(R"({"signatures": {"s": {"independence": {"s": {"rows": )") + rows + "}}}}}";
    const auto read = ReadRowRecords(json);
    ASSERT_THAT(read, SizeIs(1)) << json;
    EXPECT_FALSE(read[0].rows.at("s").independent) << json;
  }
}

TEST(RowRecord, WhatNoExportWritesRecordsNothing) {
  for (const char* json : {"", "[]", "{", R"({"signatures": []})"}) {
    EXPECT_THAT(ReadRowRecords(json), IsEmpty()) << json;
  }
  EXPECT_THAT(ReadRowRecordsOf("/nonexistent"), IsEmpty());
}

using testing::ElementsAre;
using testing::Pair;

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

TEST_F(RecordsByNameTest, ASourceHasTheRecordOfWhatWasMadeOfIt) {
  EXPECT_THAT(Independent(), ElementsAre(Pair("columnar", true), Pair("columnar_other", false),
                                         Pair("other", false), Pair("serving_default", true)));
}

TEST_F(RecordsByNameTest, ASignatureOfTheModelThatOnlyHasTheNameOfAFormerDefaultHasNone) {
  signatures_["serving_examples"] = signatures_["other"];
  EXPECT_EQ(Independent().count("serving_examples"), 0);
}

TEST_F(RecordsByNameTest, ADefaultHasTheRecordOfTheNewSignatureThatItIsACopyOf) {
  MakeDefault("columnar_other");
  EXPECT_THAT(Independent(), ElementsAre(Pair("columnar", true), Pair("columnar_other", false),
                                         Pair("other", false), Pair("serving_default", false),
                                         Pair("serving_examples", true)));
}

TEST_F(RecordsByNameTest, ListsInExamplesHaveNoKnownLengths) {
  records_[0].rows["columnar"].own_length = {"f"};
  EXPECT_TRUE(Independent()["columnar"]);
  EXPECT_FALSE(Independent()["serving_default"]);
  // Examples may be answered by stages.
  records_[0].rows["columnar"].own_length.clear();
  EXPECT_TRUE(Independent()["serving_default"]);
  records_[0].rows["columnar_item"].own_length = {"f"};
  EXPECT_FALSE(Independent()["serving_default"]);
}

}  // namespace
}  // namespace colcast::engine
