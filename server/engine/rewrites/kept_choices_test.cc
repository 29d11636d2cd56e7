#include "server/engine/rewrites/kept_choices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace colcast::engine {
namespace {

namespace fs = std::filesystem;

class KeptChoicesTest : public ::testing::Test {
 protected:
  KeptChoicesTest() : folder_(fs::path(::testing::TempDir()) / "kept_choices_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~KeptChoicesTest() override { fs::remove_all(folder_); }

  void Write(const std::string& file, const std::string& text) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file, std::ios::binary) << text;
  }

  const fs::path folder_;
  const KeptChoices choices_ = {{"columnar", {"grouped lookups", "it takes \"half\""}},
                                {"late", {"", "it loses"}}};
};

TEST_F(KeptChoicesTest, AreReadAsTheyWereWritten) {
  const std::string file = ChoicesFile(folder_ / "assets.extra", "key");
  ASSERT_TRUE(WriteChoices(file, "key", choices_).ok());
  const KeptChoices read = ReadChoices(file, "key");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read.at("columnar").graph, "grouped lookups");
  EXPECT_EQ(read.at("columnar").why, "it takes \"half\"");
  EXPECT_EQ(read.at("late").graph, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "assets.extra"), {}), 1);
}

TEST_F(KeptChoicesTest, OfAnotherKeyDoNotCount) {
  const std::string file = ChoicesFile(folder_, "key");
  ASSERT_TRUE(WriteChoices(file, "key", choices_).ok());
  EXPECT_TRUE(ReadChoices(file, "other").empty());
  EXPECT_NE(ChoicesFile(folder_, "other"), file);
}

TEST_F(KeptChoicesTest, OfABrokenFileAreNone) {
  for (const char* text : {"", "{", "[]", R"({"key": "key"})", R"({"key": "key", "signatures": 1})",
                           R"({"key": "key", "signatures": {"columnar": 1}})", R"({"key": 1})"}) {
    Write("file", text);
    EXPECT_TRUE(ReadChoices(folder_ / "file", "key").empty()) << text;
  }
  EXPECT_TRUE(ReadChoices(folder_ / "none", "key").empty());
}

TEST_F(KeptChoicesTest, AFileThatCannotBeWrittenIsAnErrorThatNamesIt) {
  const std::string file = folder_ / "no" / "such" / "file.json";
  EXPECT_EQ(WriteChoices(file, "key", choices_).message(),
            "what was chosen cannot be kept in " + file);
}

TEST_F(KeptChoicesTest, AModelsFingerprintFollowsItsGraphsValuesAndRequests) {
  const std::string before = ModelFingerprint(folder_);
  for (const char* file :
       {"saved_model.pb", "saved_model.pbtxt", "assets/words.txt", "variables/variables.index",
        "assets.extra/tf_serving_warmup_requests", "assets.extra/colcast_warmup_requests"}) {
    Write(file, "1");
    const std::string one = ModelFingerprint(folder_);
    Write(file, "2");
    EXPECT_NE(one, before) << file;
    EXPECT_NE(ModelFingerprint(folder_), one) << file;
    fs::remove(folder_ / file);
  }
  EXPECT_EQ(ModelFingerprint(folder_), before);
}

}  // namespace
}  // namespace colcast::engine
