#include "server/base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace colcast {
namespace {

TEST(JsonWriterTest, ObjectsAndListsNest) {
  JsonWriter json;
  json.Object([&] {
    json.Add({{"text", "a\"\n"},
              {"whole", int64_t{-3}},
              {"real", 0.25},
              {"none", nullptr},
              {"yes", true}});
    json.List("list", [&] {
      json.Add(int64_t{1});
      json.Object({{"a", "b"}});
    });
    json.Object("object", [] {});
  });
  EXPECT_EQ(
      json.text(),
      R"({"text":"a\"\n","whole":-3,"real":0.25,"none":null,"yes":true,"list":[1,{"a":"b"}],"object":{}})");
}

TEST(JsonWriterTest, WhatJsonHasNotIsText) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  JsonWriter json;
  json.Object({{"a", kInfinity},
               {"b", -kInfinity},
               {"c", std::numeric_limits<double>::quiet_NaN()},
               {"d", "\xff"}});
  EXPECT_EQ(json.text(), "{\"a\":\"Infinity\",\"b\":\"-Infinity\",\"c\":\"NaN\",\"d\":\"\uFFFD\"}");
}

}  // namespace
}  // namespace colcast
