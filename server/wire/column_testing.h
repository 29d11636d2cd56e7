// The values of a column, for tests.
#ifndef COLCAST_SERVER_WIRE_COLUMN_TESTING_H_
#define COLCAST_SERVER_WIRE_COLUMN_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/wire/predict_request.h"
#include "server/wire/tensor_values.h"

namespace colcast {

template <typename T>
std::vector<T> ElementsOf(const Column& column) {
  int64_t count = 0;
  EXPECT_TRUE(ElementCount(column, &count).ok());
  std::vector<T> elements(count);
  const Status status = CopyValues(column, count, elements.data());
  EXPECT_TRUE(status.ok()) << status.message;
  return elements;
}

struct StringCollector final : StringVisitor {
  void Set(int64_t, const Bytes& value) override { strings.push_back(value.ToString()); }
  void Repeat(int64_t, int64_t) override { ADD_FAILURE() << "strings are missing"; }
  std::vector<std::string> strings;
};

inline std::vector<std::string> StringsOf(const Column& column) {
  int64_t count = 0;
  EXPECT_TRUE(ElementCount(column, &count).ok());
  StringCollector collector;
  EXPECT_TRUE(VisitStrings(column, count, &collector).ok());
  return collector.strings;
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_COLUMN_TESTING_H_
