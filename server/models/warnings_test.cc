#include "server/models/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const ModelConfig kLatest{"m", "/m", {}, {}, {}};

BasePathListing Listing(const std::vector<int64_t>& versions) {
  BasePathListing listing;
  listing.readable = true;
  for (const int64_t version : versions) {
    listing.versions.push_back({version, "/m/" + std::to_string(version)});
  }
  return listing;
}

TEST(VersionWarningsTest, AStoreThatIsGoneLeavesTheVersionServing) {
  EXPECT_THAT(VersionWarnings(kLatest, BasePathListing(), {1, 2}),
              ElementsAre(AllOf(HasSubstr("/m is not a readable directory"),
                                HasSubstr("version 2 continues to serve"))));
}

TEST(VersionWarningsTest, NoneWhereAVersionIsFound) {
  EXPECT_THAT(VersionWarnings(kLatest, Listing({1}), {}), IsEmpty());
}

TEST(VersionWarningsTest, ABasePathWithoutVersion) {
  EXPECT_THAT(VersionWarnings(kLatest, Listing({}), {}),
              ElementsAre(AllOf(HasSubstr("no version under /m yet"), HasSubstr("waiting"))));
  EXPECT_THAT(VersionWarnings(kLatest, BasePathListing(), {}),
              ElementsAre(AllOf(HasSubstr("/m is not a readable directory"),
                                HasSubstr("waiting for one"))));
}

TEST(VersionWarningsTest, AVersionInPlaceOfItsBasePath) {
  BasePathListing listing = Listing({});
  listing.is_version = true;
  EXPECT_THAT(VersionWarnings(kLatest, listing, {}),
              ElementsAre(HasSubstr("this path is itself a version: use its parent")));
}

TEST(VersionWarningsTest, ADirectoryWhoseNameIsNoNumber) {
  BasePathListing listing = Listing({});
  listing.unnumbered = {"v0.1"};
  EXPECT_THAT(VersionWarnings(kLatest, listing, {}),
              ElementsAre(HasSubstr("; v0.1 is not a number")));
}

TEST(VersionWarningsTest, AVersionThatThePolicyNamesIsMissing) {
  ModelConfig specific = kLatest;
  specific.policy = {VersionPolicy::Kind::kSpecific, 1, {1, 2}};
  EXPECT_THAT(VersionWarnings(specific, Listing({1, 3}), {}), ElementsAre(HasSubstr("version 2")));
}

TEST(VersionWarningsTest, WarningsOfTheListingComeFirst) {
  BasePathListing listing = Listing({});
  listing.warnings = {"/m/7 is left out"};
  EXPECT_THAT(VersionWarnings(kLatest, listing, {}),
              ElementsAre("/m/7 is left out", HasSubstr("yet")));
}

TEST(WarningLogTest, AWarningIsRepeatedOnlyAfterItWasGoneOrALongerTime) {
  WarningLog log;
  WarningLog::Clock::time_point now;
  const auto logged = [&](const std::string& subject, const std::vector<std::string>& warnings) {
    testing::internal::CaptureStderr();
    log.Log(subject, warnings, now);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged("a", {"one"}), HasSubstr("WARNING a: one"));
  EXPECT_THAT(logged("a", {"one", "two"}), AllOf(HasSubstr("a: two"), Not(HasSubstr("a: one"))));
  EXPECT_THAT(logged("b", {"one"}), HasSubstr("b: one"));
  EXPECT_EQ(logged("a", {"one"}), "");
  EXPECT_EQ(logged("a", {}), "");
  EXPECT_THAT(logged("a", {"one"}), HasSubstr("a: one"));
  now += std::chrono::minutes(1);
  EXPECT_THAT(logged("a", {"one"}), HasSubstr("a: one"));
  now += std::chrono::minutes(1);
  EXPECT_EQ(logged("a", {"one"}), "");
  now += std::chrono::minutes(1);
  EXPECT_THAT(logged("a", {"one"}), HasSubstr("a: one"));
}

}  // namespace
}  // namespace colcast::models
