#include "server/models/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

BasePathListing Listing(const std::vector<int64_t>& versions, bool is_version = false,
                        std::vector<std::string> unnumbered = {},
                        std::vector<std::string> warnings = {}) {
  BasePathListing listing;
  listing.readable = true;
  listing.is_version = is_version;
  for (const int64_t version : versions) listing.versions.push_back({version, "/m"});
  listing.unnumbered = std::move(unnumbered);
  listing.warnings = std::move(warnings);
  return listing;
}

TEST(VersionWarningsTest, WarningsSayWhatIsMissingWhyAndWhatServes) {
  const VersionPolicy latest;
  const VersionPolicy specific = {VersionPolicy::Kind::kSpecific, 1, {1, 2}};
  const struct {
    BasePathListing listing;
    VersionPolicy policy;
    std::vector<int64_t> serving;
    std::vector<const char*> warnings;  // expected substrings
  } kCases[] = {
      {Listing({1}), latest, {}, {}},
      {Listing({}), latest, {}, {"no version under /m yet (a version is"}},
      {Listing({}), latest, {}, {"waiting for one"}},
      {BasePathListing(), latest, {}, {"/m is not a readable directory"}},
      {BasePathListing(), latest, {1, 2}, {"version 2 continues to serve"}},
      {Listing({}, true), latest, {}, {"this path is itself a version: use its parent"}},
      {Listing({}, false, {"v0.1"}), latest, {}, {"; v0.1 is not a number"}},
      {Listing({1, 3}), specific, {}, {"version 2, which the version policy requests, is not"}},
      {Listing({}, false, {}, {"/m/7 is left out"}), latest, {}, {"/m/7 is left out", "yet"}},
  };
  for (const auto& one : kCases) {
    const auto found = VersionWarnings({"m", "/m", one.policy, {}, {}}, one.listing, one.serving);
    ASSERT_EQ(found.size(), one.warnings.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_THAT(found[i], HasSubstr(one.warnings[i]));
  }
}

TEST(WarningLogTest, AWarningIsRepeatedOnlyAfterItHasDisappeared) {
  WarningLog log;
  const auto logged = [&](const std::string& subject, const std::vector<std::string>& warnings) {
    testing::internal::CaptureStderr();
    log.Log(subject, warnings);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged("a", {"one"}), HasSubstr("WARNING a: one"));
  EXPECT_THAT(logged("a", {"one", "two"}), AllOf(HasSubstr("a: two"), Not(HasSubstr("a: one"))));
  EXPECT_THAT(logged("b", {"one"}), HasSubstr("b: one"));
  EXPECT_EQ(logged("a", {"one"}), "");
  EXPECT_EQ(logged("a", {}), "");
  EXPECT_THAT(logged("a", {"one"}), HasSubstr("a: one"));
}

}  // namespace
}  // namespace colcast::models
