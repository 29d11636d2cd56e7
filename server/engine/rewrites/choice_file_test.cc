#include "server/engine/rewrites/choice_file.h"

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

  const std::string folder_;
};

TEST_F(ChoiceFileTest, IsOfItsKey) {
  const std::string file = Write("a.json", For("this"));
  const auto choice = FindChoice(file, "this");
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->path, file);
  EXPECT_THAT(choice->rewrites, ElementsAre("r"));
  EXPECT_THAT(choice->signatures, ElementsAre("columnar", "late"));
  EXPECT_EQ(FindChoice(file, "other").status().message(), file + " is for \"this\"");
}

TEST_F(ChoiceFileTest, IsFoundInAFolderBesideOthersAndBrokenOnes) {
  Write("a.json", For("other"));
  Write("b.json", "{");
  Write("c.json", For("this", "bfloat16 products"));
  Write("d.txt", "no choice");
  EXPECT_THAT(FindChoice(folder_, "this")->rewrites, ElementsAre("bfloat16 products"));
  const std::string problem(FindChoice(folder_, "none").status().message());
  EXPECT_THAT(problem, HasSubstr("none of the 3 choices in " + folder_));
  EXPECT_THAT(problem, HasSubstr("b.json: is no JSON object"));
}

TEST_F(ChoiceFileTest, SaysWhyAFileIsNotUsed) {
  const std::pair<std::string, std::string> kCases[] = {
      {"[]", "is no JSON object"},
      {"{}", "is not what `colcast tune --graphs` writes"},
      {R"({"key": "k", "rewrites": [1], "signatures": []})", "is not what"},
      {R"({"key": "k", "rewrites": "all", "signatures": []})", "is not what"},
      {std::string((1 << 20) + 1, ' '), "more than 1048576 bytes"},
      {std::string(1 << 20, '['), "is no JSON object"},
  };
  for (const auto& [text, problem] : kCases) {
    const auto choice = FindChoice(Write("a.json", text), "k");
    EXPECT_THAT(std::string(choice.status().message()), HasSubstr(problem));
  }
  EXPECT_THAT(std::string(FindChoice(folder_ + "/none", "k").status().message()),
              HasSubstr("/none: No such file"));
}

}  // namespace
}  // namespace colcast::engine
