#include "server/engine/rewrites/rewrite_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChoiceFileTest : public ::testing::Test {
 protected:
  ChoiceFileTest() : folder_(::testing::TempDir() + "/choices") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  static std::string For(const std::string& key, const std::string& rewrite = "r") {
    return R"({"key": ")" + key + R"(", "rewrites": [")" + rewrite +
           R"("], "signatures": ["columnar", "late"], "proof": {"score": 0.1}})";
  }

  static std::string Problem(const std::string& path, const std::string& key) {
    ChoiceFile choice;
    return FindChoice(path, key, &choice).message;
  }

  const std::string folder_;
};

TEST_F(ChoiceFileTest, AChoiceIsUsedOnlyForItsKey) {
  const std::string file = Write("a.json", For("this"));
  ChoiceFile choice;
  const Status status = FindChoice(file, "this", &choice);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(choice.path, file);
  EXPECT_THAT(choice.rewrites, ElementsAre("r"));
  EXPECT_THAT(choice.signatures, ElementsAre("columnar", "late"));
  EXPECT_EQ(Problem(file, "other"), file + " is for \"this\"");
}

TEST_F(ChoiceFileTest, AChoiceIsFoundByItsKeyInAFolderWithBrokenFiles) {
  Write("a.json", For("other"));
  Write("b.json", "{");
  Write("c.json", For("this", "bfloat16 products"));
  Write("d.txt", "no choice");
  ChoiceFile choice;
  EXPECT_TRUE(FindChoice(folder_, "this", &choice).ok());
  EXPECT_THAT(choice.rewrites, ElementsAre("bfloat16 products"));
  const std::string problem = Problem(folder_, "none");
  EXPECT_THAT(problem, HasSubstr("none of the 3 choices in " + folder_));
  EXPECT_THAT(problem, HasSubstr("b.json: is not a JSON object"));
}

TEST_F(ChoiceFileTest, ErrorsSayWhyAFileIsNotUsed) {
  const std::pair<std::string, std::string> kCases[] = {
      {"[]", "is not a JSON object"},
      {"{}", "was not written by `colcast tune --graphs`"},
      {R"({"key": "k", "rewrites": [1], "signatures": []})", "was not written by"},
      {R"({"key": "k", "rewrites": "all", "signatures": []})", "was not written by"},
      {std::string((1 << 20) + 1, ' '), "more than 1048576 bytes"},
      {std::string(1 << 20, '['), "is not a JSON object"},
  };
  for (const auto& [text, problem] : kCases) {
    EXPECT_THAT(Problem(Write("a.json", text), "k"), HasSubstr(problem));
  }
  EXPECT_THAT(Problem(folder_ + "/none", "k"), HasSubstr("/none: No such file"));
}

}  // namespace
}  // namespace colcast::engine
