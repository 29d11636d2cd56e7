#include "server/wire/name_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace colcast {
namespace {

TEST(NameTableTest, NumbersNamesInOrderOfFirstUse) {
  NameTable table;
  EXPECT_EQ(table.FindOrAdd("age"), 0u);
  EXPECT_EQ(table.FindOrAdd(""), 1u);
  EXPECT_EQ(table.FindOrAdd("age"), 0u);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.Find(""), 1u);
  EXPECT_EQ(table.Find("ag"), table.size());
}

TEST(NameTableTest, GrowsAndForgets) {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("feature_" + std::to_string(i));
  NameTable table;
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.FindOrAdd(names[i]), i);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.Find(names[i]), i);
  table.Clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.Find(names[7]), table.size());
}

}  // namespace
}  // namespace colcast
