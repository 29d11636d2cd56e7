#include "server/engine/rewrites/lookup_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Apply(const std::string& words, std::vector<int64_t> ids) {
  const auto chain = LookupChain::Parse(words);
  EXPECT_TRUE(chain.ok()) << chain.status();
  ApplySteps(chain->steps, absl::MakeSpan(ids));
  return ids;
}

TEST(LookupChainTest, WordsAreParsedAndWrittenBack) {
  for (const std::string words : {"copy", "gather", "gather sum", "hide=0 mod=3 gather mean",
                                  "int32=0 at_least=-3 at_most=7 mod=5 wrap=9 hash=4 gather"}) {
    const auto chain = LookupChain::Parse(words);
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_EQ(chain->Words(), words);
  }
}

TEST(LookupChainTest, ErrorsNameUnknownWords) {
  for (const char* word : {"", "leap=3", "mod", "mod=x"}) {
    EXPECT_THAT(LookupChain::Parse(absl::StrCat(word, " gather")).status().message(),
                HasSubstr(absl::StrCat("\"", word, "\"")));
  }
}

TEST(LookupChainTest, ModComputesFloorMod) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Apply("mod=5 gather", {-6, -5, -1, 0, 4, 5, kLeast}),
              ElementsAre(4, 0, 4, 0, 4, 0, 2));
}

TEST(LookupChainTest, BoundsWrappingAndCastsAreAppliedInOrder) {
  EXPECT_THAT(Apply("at_least=-2 at_most=3 wrap=10 gather", {-9, -1, 2, 8}),
              ElementsAre(8, 9, 2, 3));
  EXPECT_THAT(Apply("int32=0 gather", {(int64_t{1} << 32) + 3, int64_t{1} << 31}),
              ElementsAre(3, std::numeric_limits<int32_t>::min()));
}

TEST(LookupChainTest, HidingUsesTheIdsValueAtThatStep) {
  const auto chain = LookupChain::Parse("mod=5 hide=0 at_least=2 gather mean");
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::vector<int64_t> ids = {0, 5, 2, 6};
  std::vector<float> weights = {1, 1, 1, 1};
  ApplySteps(chain->steps, absl::MakeSpan(ids), absl::MakeSpan(weights));
  EXPECT_THAT(ids, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(weights, ElementsAre(0, 0, 1, 1));
}

}  // namespace
}  // namespace colcast::engine
