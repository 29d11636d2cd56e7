#include "server/engine/rewrites/float32_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/engine/rewrites/lookup_testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

const RowTypes kInInt8 = {{"table", tensorflow::DT_INT8}};

using Float32TablesTest = LookupGraphTest;

TEST_F(Float32TablesTest, WithoutFloat32TheTableAnswersAndWhatReadsTheVariableFails) {
  const auto session = Start(Rounded());
  const Feeds feeds = Requests({5, 19'999}, 3);
  const auto before = Fetch(session.get(), feeds);
  const auto notes = DropUnread({{"scores", {{}, kInInt8}}, {"others", {{"other"}, {}}}}, {"table"},
                                session.get());
  EXPECT_THAT(notes, ElementsAre("1 table in int8 alone: 0.00192 GB freed"));
  const auto after = Fetch(session.get(), feeds);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(after->tensor_data() == before->tensor_data());
  EXPECT_FALSE(Fetch(session.get(), {}, "read:0").ok());
  EXPECT_FALSE(session->Run({{"values", Values(1)}}, {}, {"add"}, nullptr).ok());
}

TEST_F(Float32TablesTest, ATableThatHasNotRunIsRoundedBeforeItsFloat32Goes) {
  const auto session = Start(Rounded());
  ASSERT_TRUE(MakeRoundedTables(kInInt8, session.get()).ok());
  DropUnread({{"scores", {{}, kInInt8}}}, {}, session.get());
  EXPECT_NEAR(FirstOfRow1(session.get()), std::sin(24.0f), 1.0 / 251);
}

TEST_F(Float32TablesTest, WhatAnotherSignatureReadsStays) {
  const auto session = Start(Rounded());
  const auto notes = DropUnread({{"scores", {{}, kInInt8}}, {"others", {{"table"}, {}}}}, {"table"},
                                session.get());
  EXPECT_THAT(notes,
              ElementsAre("1 table stays in float32 as well: signature \"others\" reads float32"));
  EXPECT_TRUE(Fetch(session.get(), {}, "read:0").ok());
}

TEST_F(Float32TablesTest, AVariableThatNoSignatureReadsIsDropped) {
  const auto session = Start(Original());
  EXPECT_THAT(DropUnread({{"others", {{"other"}, {}}}}, VariablesOf(Original()), session.get()),
              ElementsAre("1 variable that no signature reads: 0.00192 GB freed"));
  EXPECT_FALSE(Fetch(session.get(), {}, "read:0").ok());
}

}  // namespace
}  // namespace colcast::engine
