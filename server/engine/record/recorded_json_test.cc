#include "server/engine/record/recorded_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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

}  // namespace
}  // namespace colcast::engine
