#include "server/items/item_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/items/testing.h"
#include "server/wire/column.h"
#include "server/wire/feature_json.h"
#include "server/wire/testing.h"

namespace colcast::items {
namespace {

using testing::ElementsAre;

class ItemColumnsTest : public testing::Test {
 protected:
  ItemColumnsTest() {
    std::shared_ptr<const TableFile> read;
    EXPECT_TRUE(ReadTestFile(MakeTestTable({1, 2, 3}).Bytes(), &read).ok());
    std::shared_ptr<const ItemTable> table = ItemTable::Create(read);
    EXPECT_TRUE(table->WithDelta(DeltaOf(*table), &table).ok());
    std::vector<size_t> features;
    for (size_t i = 0; i < table->features().size(); ++i) features.push_back(i);
    AddColumns(table, {2, 3, 4, ItemTable::kUnknown}, features, &request_);
  }

  static std::shared_ptr<const TableFile> DeltaOf(const ItemTable& table) {
    std::shared_ptr<const TableFile> read;
    const TestFile delta = MakeTestDelta(table.header().checksum, 1, {4}, {});
    EXPECT_TRUE(ReadTestFile(delta.Bytes(), &read, TableFile::Kind::kDelta).ok());
    return read;
  }

  template <typename T>
  std::vector<T> Numbers(const std::string& name) {
    return ElementsOf<T>(*request_.Find(name));
  }

  DecodedRequest request_;
};

TEST_F(ItemColumnsTest, FixedLengthFeaturesBecomeColumns) {
  EXPECT_THAT(request_.Find("price")->dims, ElementsAre(4));
  EXPECT_THAT(Numbers<float>("price"), ElementsAre(2.25, 3.25, 4.25, 0.5));
  EXPECT_THAT(request_.Find("size")->dims, ElementsAre(4, 2));
  EXPECT_THAT(Numbers<int64_t>("size"), ElementsAre(2, -2, 3, -3, 4, -4, 7, 8));
}

TEST_F(ItemColumnsTest, ListsArePaddedToTheLongest) {
  EXPECT_THAT(request_.Find("tags")->dims, ElementsAre(4, 2));
  EXPECT_THAT(Numbers<int64_t>("tags"), ElementsAre(20, 21, 0, 0, 40, 0, 0, 0));
  EXPECT_THAT(Numbers<int64_t>("tags/length"), ElementsAre(2, 0, 1, 0));
  EXPECT_THAT(Numbers<int64_t>("steps"), ElementsAre(20, 21, -1, -1, 40, -1, -1, -1));
  EXPECT_EQ(request_.Find("steps/length"), nullptr);
}

TEST_F(ItemColumnsTest, StringListsArePaddedWithEmptyStrings) {
  EXPECT_THAT(StringsOf(*request_.Find("name")), ElementsAre("item 2", "item 3", "item 4", "?"));
  EXPECT_THAT(StringsOf(*request_.Find("words")),
              ElementsAre("w0", "w1", "", "", "w0", "", "", ""));
}

TEST_F(ItemColumnsTest, ListsOfStringsArePaddedWithTheirDefault) {
  TestFile file = MakeTestTable({2, 3});
  std::string& declared = file.metadata["features"];
  constexpr std::string_view kWords = R"("ragged","dtype":"string","shape":[],"default":null)";
  declared.replace(declared.find(kWords), kWords.size(),
                   R"("fixed_len_sequence","dtype":"string","shape":[],"default":["-"])");
  std::shared_ptr<const TableFile> read;
  ASSERT_TRUE(ReadTestFile(file.Bytes(), &read).ok());
  const std::shared_ptr<const ItemTable> table = ItemTable::Create(read);
  const std::vector<size_t> features = {table->features().size() - 1};
  DecodedRequest request;
  AddColumns(table, {1, 2}, features, &request);
  EXPECT_THAT(StringsOf(*request.Find("words")), ElementsAre("w0", "w1", "-", "-"));
}

TEST_F(ItemColumnsTest, SelectedRowsAreReadInOrder) {
  const std::vector<int64_t> rows = {2, 0};
  const Span<int64_t> places = rows;
  std::vector<int64_t> tags(4);
  request_.Find("tags")->values.stored->Copy(&places, tags.data());
  EXPECT_THAT(tags, ElementsAre(40, 0, 20, 21));
  struct Names final : StringVisitor {
    void Set(int64_t, const Bytes& value) override { texts.push_back(value.ToString()); }
    std::vector<std::string> texts;
  } names;
  request_.Find("name")->values.stored->Visit(&places, &names);
  EXPECT_THAT(names.texts, ElementsAre("item 4", "item 2"));
}

TEST_F(ItemColumnsTest, AllColumnsShareTheirRows) {
  const StoredRows& rows = request_.Find("price")->values.stored->rows();
  EXPECT_THAT(std::vector<uint32_t>(rows.numbers.begin(), rows.numbers.end()),
              ElementsAre(2, 3, 4, 0));
  EXPECT_EQ(&rows, &request_.Find("words/length")->values.stored->rows());
}

using testing::HasSubstr;

// An export record with the features of a test table, each declared as in the table.
std::string RecordOf(std::string features) {
  rapidjson::Document list;
  list.Parse(features.data(), features.size());
  std::string json = R"({"signatures":{"columnar":{"features":{)";
  size_t at = 0;
  for (size_t i = 0; i < list.Size(); ++i) {
    const size_t name = features.find("\"name\":", at);
    const size_t end = features.find('}', name);
    json += (i == 0 ? "" : ",");
    json += "\"" + std::string(list[static_cast<unsigned>(i)]["name"].GetString()) +
            "\":{\"side\":\"item\"," + features.substr(name, end - name) + "}";
    at = end;
  }
  return json + "}}}}";
}

Status Check(const std::string& record, const TestFile& file) {
  std::shared_ptr<const TableFile> read;
  EXPECT_TRUE(ReadTestFile(file.Bytes(), &read).ok());
  rapidjson::Document json;
  EXPECT_TRUE(ParseJson(record, &json));
  return CheckFeatures(ReadModelFeatures(json), "item", read->features());
}

TEST(ModelFeaturesTest, FeaturesMustEqualTheTables) {
  const TestFile file = MakeTestTable({1});
  const std::string features = file.metadata.at("features");
  const Status same = Check(RecordOf(features), file);
  EXPECT_TRUE(same.ok()) << same.message;
  std::string other = features, renamed = features;
  other.replace(other.find("[0.5]"), 5, "[0.6]");
  renamed.replace(renamed.find("price"), 5, "prize");
  const std::pair<std::string, const char*> kCases[] = {
      {RecordOf(other), "\"price\" has a different default"},
      {RecordOf(renamed), "has no feature \"prize\""},
      {RecordOf(features.substr(0, features.rfind(",{")) + "]"), "has a feature \"words\""},
      {"{}", "no feature of the domain"},
  };
  for (const auto& [record, error] : kCases) {
    const Status status = Check(record, file);
    EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message, HasSubstr(error));
  }
}

}  // namespace
}  // namespace colcast::items
