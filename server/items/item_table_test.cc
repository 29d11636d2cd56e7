#include "server/items/item_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/items/testing.h"

namespace colcast::items {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const ItemTable> TableOf(const TestFile& file) {
  std::shared_ptr<const TableFile> read;
  const Status status = ReadTestFile(file.Bytes(), &read);
  EXPECT_TRUE(status.ok()) << status.message;
  return ItemTable::Create(read);
}

Status Apply(const TestFile& delta, std::shared_ptr<const ItemTable>* table) {
  std::shared_ptr<const TableFile> read;
  Status status = ReadTestFile(delta.Bytes(), &read, TableFile::Kind::kDelta);
  return status.ok() ? (*table)->WithDelta(read, table) : status;
}

std::vector<uint32_t> Find(const ItemTable& table, const std::vector<int64_t>& keys) {
  Keys wanted;
  wanted.numbers = keys;
  std::vector<uint32_t> numbers;
  table.Find(wanted, &numbers);
  return numbers;
}

std::string NameAt(const ItemTable& table, uint32_t number) {
  const ItemTable::Place place = table.At(number);
  return std::string((*place.columns)[table.features().Find("name")].texts[place.row]);
}

TEST(ItemTableTest, FindsEachKeyAndNoOther) {
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 1000; ++key) keys.push_back(key * 7919);
  const auto table = TableOf(MakeTestTable(keys));
  const std::vector<uint32_t> numbers = Find(*table, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(NameAt(*table, numbers[i]), "item " + std::to_string(keys[i]));
  }
  EXPECT_THAT(Find(*table, {1, -7919}), ElementsAre(ItemTable::kUnknown, ItemTable::kUnknown));
}

TEST(ItemTableTest, FindsTextKeys) {
  TestFile file = MakeTestTable({1, 2});
  file.SetTextKeys({"a", ""}, 4);
  const auto table = TableOf(file);
  const std::vector<int64_t> offsets = {0, 0, 1, 2};
  Keys wanted;
  wanted.are_texts = true;
  wanted.texts = {offsets, "ab"};
  std::vector<uint32_t> numbers;
  table->Find(wanted, &numbers);
  EXPECT_THAT(numbers, ElementsAre(2, 1, ItemTable::kUnknown));
}

TEST(ItemTableTest, UnknownKeysGetDefaultsOfFeaturesThatHaveOne) {
  TestFile file = MakeTestTable({1});
  EXPECT_EQ(NameAt(*TableOf(file), ItemTable::kUnknown), "?");
  EXPECT_EQ(TableOf(file)->without_default(), "");
  std::string& features = file.metadata["features"];
  features.replace(features.find("[\"?\"]"), 5, "null");
  EXPECT_EQ(NameAt(*TableOf(file), ItemTable::kUnknown), "");
  EXPECT_EQ(TableOf(file)->without_default(), "name");
}

TEST(ItemTableTest, DeltasReplaceAddAndDeleteRows) {
  auto table = TableOf(MakeTestTable({1, 2, 3}));
  const auto before = table;
  const std::string checksum = table->header().checksum;
  ASSERT_TRUE(Apply(MakeTestDelta(checksum, 1, {2, 4}, {3}), &table).ok());
  ASSERT_TRUE(Apply(MakeTestDelta(checksum, 2, {3}, {4, 99}), &table).ok());
  EXPECT_THAT(Find(*table, {1, 2, 3, 4, 99}), ElementsAre(1, 4, 6, 0, 0));
  EXPECT_EQ(NameAt(*table, 4), "item 2");
  EXPECT_EQ(NameAt(*table, 6), "item 3");
  EXPECT_EQ(table->rows(), 3);
  EXPECT_EQ(table->deltas(), 2);
  EXPECT_EQ(table->number(), before->number());
  EXPECT_THAT(Find(*before, {1, 2, 3, 4}), ElementsAre(1, 2, 3, 0));
}

TEST(ItemTableTest, RefusesADeltaWithADifferentKeyOrDomain) {
  auto table = TableOf(MakeTestTable({1}));
  for (const char* const entry : {"key", "model_domain"}) {
    TestFile delta = MakeTestDelta(table->header().checksum, 1, {2}, {});
    delta.metadata[entry] = "other";
    const Status status = Apply(delta, &table);
    EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message, HasSubstr("differ from the table's"));
  }
}

}  // namespace
}  // namespace colcast::items
