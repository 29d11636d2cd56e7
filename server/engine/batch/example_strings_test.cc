#include "server/engine/batch/example_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

// The views of a column's strings; none if they cannot be read as that many rows.
std::vector<std::string_view> Views(std::vector<int64_t> dims,
                                    const std::vector<std::string_view>& values, int64_t rows) {
  Column column;
  column.dtype = DT_STRING;
  column.dims = std::move(dims);
  for (const std::string_view value : values) column.values.AddString(value);
  Input wire(column);
  EXPECT_TRUE(wire.Check().ok());
  std::vector<Bytes> strings;
  std::vector<std::string_view> views;
  if (!AddStrings(wire, rows, &strings)) return views;
  for (const Bytes& string : strings) views.push_back(string.view());
  return views;
}

TEST(ExampleStringsTest, TheirBytesStayWhereTheyAre) {
  const std::string text = "an Example";
  const std::vector<std::string_view> views = Views({2}, {text, "b"}, 2);
  EXPECT_THAT(views, ElementsAre(text, "b"));
  EXPECT_EQ(views[0].data(), text.data());
}

TEST(ExampleStringsTest, OneIsRepeatedAndSoIsTheLastOfAShortList) {
  EXPECT_THAT(Views({1}, {"a"}, 3), ElementsAre("a", "a", "a"));
  EXPECT_THAT(Views({3}, {"a", "b"}, 3), ElementsAre("a", "b", "b"));
  EXPECT_THAT(Views({2}, {}, 2), ElementsAre("", ""));
}

TEST(ExampleStringsTest, OtherShapesAreNoExamples) {
  EXPECT_THAT(Views({2, 1}, {"a", "b"}, 2), ElementsAre());
  EXPECT_THAT(Views({2}, {"a", "b"}, 3), ElementsAre());
}

}  // namespace
}  // namespace colcast::engine
