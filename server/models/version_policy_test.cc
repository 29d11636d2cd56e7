#include "server/models/version_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<VersionDirectory> kOnDisk = {{1, "/m/1"}, {4, "/m/4"}, {9, "/m/9"}};

std::vector<int64_t> Selected(const VersionPolicy& policy) {
  std::vector<int64_t> versions;
  for (const VersionDirectory& directory : SelectVersions(policy, kOnDisk)) {
    versions.push_back(directory.version);
  }
  return versions;
}

TEST(VersionPolicyTest, LatestTakesTheHighest) {
  EXPECT_THAT(Selected({VersionPolicy::Kind::kLatest, 1, {}}), ElementsAre(9));
  EXPECT_THAT(Selected({VersionPolicy::Kind::kLatest, 2, {}}), ElementsAre(4, 9));
  EXPECT_THAT(Selected({VersionPolicy::Kind::kLatest, 7, {}}), ElementsAre(1, 4, 9));
}

TEST(VersionPolicyTest, AllTakesAll) {
  EXPECT_THAT(Selected({VersionPolicy::Kind::kAll, 1, {}}), ElementsAre(1, 4, 9));
}

TEST(VersionPolicyTest, SpecificTakesThoseThatAreThere) {
  const VersionPolicy policy{VersionPolicy::Kind::kSpecific, 1, {1, 5, 9}};
  EXPECT_THAT(Selected(policy), ElementsAre(1, 9));
  EXPECT_THAT(MissingVersions(policy, kOnDisk), ElementsAre(5));
  EXPECT_THAT(Selected({VersionPolicy::Kind::kSpecific, 1, {}}), IsEmpty());
}

}  // namespace
}  // namespace colcast::models
