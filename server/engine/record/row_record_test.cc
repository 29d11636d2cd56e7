#include "server/engine/record/row_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace colcast::engine {
namespace {

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

TEST(RowRecord, WhatOneStageMayNotPadNoneMay) {
  const auto rows = ReadRowRecords(kRecord)[0].rows;
  EXPECT_THAT(rows.at("columnar_late").own_length, ElementsAre("ids", "words"));
  EXPECT_THAT(rows.at("columnar").own_length, ElementsAre("ids", "words"));
}

TEST(RowRecord, OfAnEarlierExportNothingIsKnown) {
  const auto read = ReadRowRecords(R"({"signatures": {"columnar": {"parity":
      {"rows_independent": true}, "parts": {"users_per_run": "many"}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].rows, IsEmpty());
}

TEST(RowRecord, ADomainWithoutAStageHasItsColumns) {
  const auto read = ReadRowRecords(R"({"signatures": {"columnar": {
      "features": {"shop_id": {"side": "shop"}, "item_id": {"side": "item"},
                   "position": {"side": "candidate"}, "distance": {"side": "item"}},
      "parts": {"domains": ["user", "item"],
                "context_features": ["shop_id", "position", "distance"]}}}})");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].stages, ElementsAre("user", "item"));
  EXPECT_THAT(read[0].columns,
              ElementsAre(Pair("item", ElementsAre("distance/length", "item_id", "item_id/length")),
                          Pair("shop", ElementsAre("shop_id", "shop_id/length"))));
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

}  // namespace
}  // namespace colcast::engine
