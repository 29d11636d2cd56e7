#include "server/models/version_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

namespace colcast::models {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class VersionDirectoryTest : public testing::Test {
 protected:
  VersionDirectoryTest() {
    fs::remove_all(base_);
    fs::create_directories(base_);
  }
  ~VersionDirectoryTest() override { fs::remove_all(base_); }

  void MakeVersion(const std::string& name, const char* file = "saved_model.pb") {
    fs::create_directories(base_ / name);
    if (file != nullptr) std::ofstream(base_ / name / file) << "graph";
  }
  auto IsVersion(int64_t version, const std::string& name) {
    return AllOf(Field(&VersionDirectory::version, version),
                 Field(&VersionDirectory::path, (base_ / name).native()));
  }

  const fs::path base_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(VersionDirectoryTest, OrdersVersionsAsNumbers) {
  for (const char* name : {"10", "9", "0002"}) MakeVersion(name);
  EXPECT_THAT(ListVersions(base_).versions,
              ElementsAre(IsVersion(2, "0002"), IsVersion(9, "9"), IsVersion(10, "10")));
}

TEST_F(VersionDirectoryTest, SkipsNamesThatAreNotVersions) {
  for (const char* name : {"1a", "-1", "+1", "v1", "tmp", "99999999999999999999"}) {
    MakeVersion(name);
  }
  const BasePathListing listing = ListVersions(base_);
  EXPECT_THAT(listing.versions, IsEmpty());
  EXPECT_THAT(listing.unnumbered,
              UnorderedElementsAre("1a", "-1", "+1", "v1", "tmp", "99999999999999999999"));
}

TEST_F(VersionDirectoryTest, SkipsAVersionThatIsStillBeingCopied) {
  MakeVersion("1");
  MakeVersion("2", nullptr);
  MakeVersion("3", "saved_model.pbtxt");
  EXPECT_THAT(ListVersions(base_).versions, ElementsAre(IsVersion(1, "1"), IsVersion(3, "3")));
  EXPECT_THAT(ListVersions(base_).warnings, ElementsAre(HasSubstr("/2 is left out until")));
}

TEST_F(VersionDirectoryTest, KeepsOneDirectoryPerVersion) {
  for (const char* name : {"7", "007", "8"}) MakeVersion(name);
  const BasePathListing listing = ListVersions(base_);
  EXPECT_THAT(listing.versions, ElementsAre(IsVersion(7, "7"), IsVersion(8, "8")));
  EXPECT_THAT(listing.warnings, ElementsAre(HasSubstr("/007 is left out")));
}

TEST_F(VersionDirectoryTest, AVersionIsNotABasePath) {
  MakeVersion("1");
  EXPECT_FALSE(ListVersions(base_).is_version);
  EXPECT_TRUE(ListVersions(base_ / "1").is_version);
  EXPECT_THAT(ListVersions(base_ / "1").versions, IsEmpty());
}

TEST_F(VersionDirectoryTest, AMissingBasePathHasNoVersions) {
  EXPECT_THAT(ListVersions(base_ / "missing").versions, IsEmpty());
  EXPECT_FALSE(ListVersions(base_ / "missing").readable);
  EXPECT_TRUE(ListVersions(base_).readable);
}

TEST_F(VersionDirectoryTest, TheHashChangesIfAFileIsAddedGrowsOrIsReplaced) {
  MakeVersion("1");
  std::vector<uint64_t> seen = {FilesOf(base_ / "1")};
  EXPECT_EQ(FilesOf(base_ / "1"), seen.back());
  const auto expect_others = [&] {
    seen.push_back(FilesOf(base_ / "1"));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), seen.back()), 1);
  };
  fs::create_directories(base_ / "1" / "variables");
  std::ofstream(base_ / "1" / "variables" / "data") << "1";
  expect_others();
  std::ofstream(base_ / "1" / "variables" / "data", std::ios::app) << "2";
  expect_others();
  const auto before = fs::last_write_time(base_ / "1" / "variables" / "data");
  fs::last_write_time(base_ / "1" / "variables" / "data", before + std::chrono::seconds(1));
  expect_others();
}

TEST_F(VersionDirectoryTest, TheHashIgnoresDeltasOfTables) {
  MakeVersion("1");
  const uint64_t before = FilesOf(base_ / "1");
  fs::create_directories(base_ / "1" / "deltas");
  std::ofstream(base_ / "1" / "deltas" / "delta-000001.safetensors") << "1";
  EXPECT_EQ(FilesOf(base_ / "1"), before);
}

const std::vector<VersionDirectory> kOnDisk = {{1, "/m/1"}, {4, "/m/4"}, {9, "/m/9"}};

std::vector<int64_t> Selected(const VersionPolicy& policy) {
  std::vector<int64_t> versions;
  for (const VersionDirectory& directory : SelectVersions(policy, kOnDisk)) {
    versions.push_back(directory.version);
  }
  return versions;
}

TEST(VersionPolicyTest, ALatestPolicySelectsTheHighestVersions) {
  EXPECT_THAT(Selected({VersionPolicy::Kind::kLatest, 1, {}}), ElementsAre(9));
  EXPECT_THAT(Selected({VersionPolicy::Kind::kLatest, 2, {}}), ElementsAre(4, 9));
  EXPECT_THAT(Selected({VersionPolicy::Kind::kLatest, 7, {}}), ElementsAre(1, 4, 9));
}

TEST(VersionPolicyTest, ASpecificPolicySelectsItsVersionsOnDisk) {
  const VersionPolicy policy{VersionPolicy::Kind::kSpecific, 1, {1, 5, 9}};
  EXPECT_THAT(Selected(policy), ElementsAre(1, 9));
  EXPECT_THAT(MissingVersions(policy, kOnDisk), ElementsAre(5));
  EXPECT_THAT(Selected({VersionPolicy::Kind::kSpecific, 1, {}}), IsEmpty());
}

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() {
    fs::remove_all(directory_);
    Write("saved_model.pb", "graph");
    Write("assets/words.txt", "hello\n");
    Write("variables/variables.data-00000-of-00001", "1234");
    Write("assets.extra/colcast.json", R"({"signatures": {}, "files": {
        "saved_model.pb": {"bytes": 5, "crc32": "094505dc"},
        "assets/words.txt": {"bytes": 6, "crc32": "363a3020"},
        "variables/variables.data-00000-of-00001": {"bytes": 4}}})");
  }
  ~ManifestTest() override { fs::remove_all(directory_); }

  void Write(const std::string& name, const std::string& content) {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name) << content;
  }
  void ExpectNotWhole(const std::string& name, const std::string& what) {
    const Status status = CheckManifest(directory_);
    EXPECT_EQ(status.code, StatusCode::kUnavailable) << status.message;
    EXPECT_THAT(status.message, HasSubstr((directory_ / name).native() + " " + what));
  }

  const fs::path directory_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ManifestTest, ErrorsNameMissingAndTruncatedFiles) {
  Write("assets/words.txt", "hel");
  ExpectNotWhole("assets/words.txt", "has 3 bytes where the export wrote 6");
  fs::remove(directory_ / "assets/words.txt");
  ExpectNotWhole("assets/words.txt", "is missing");
}

// Some copying tools allocate a file's full size first.
TEST_F(ManifestTest, ErrorsNameFilesWithAWrongChecksum) {
  Write("assets/words.txt", std::string("hel\0\0\0", 6));
  ExpectNotWhole("assets/words.txt", "has the checksum ");
}

// Contents are not compared, because TensorFlow checks each tensor that it restores.
TEST_F(ManifestTest, OnlyTheSizeOfVariablesIsChecked) {
  Write("variables/variables.data-00000-of-00001", "4321");
  EXPECT_TRUE(CheckManifest(directory_).ok());
  Write("variables/variables.data-00000-of-00001", "43");
  ExpectNotWhole("variables/variables.data-00000-of-00001", "has 2 bytes");
}

TEST_F(ManifestTest, ErrorsNameATruncatedRecord) {
  Write("assets.extra/colcast.json", R"({"signatures": {}, "fil)");
  ExpectNotWhole("assets.extra/colcast.json", "is not JSON");
}

TEST_F(ManifestTest, NothingIsCheckedWithoutAList) {
  fs::remove(directory_ / "assets/words.txt");
  Write("assets.extra/colcast.json", R"({"signatures": {}})");
  EXPECT_TRUE(CheckManifest(directory_).ok());
  fs::remove_all(directory_ / "assets.extra");
  EXPECT_TRUE(CheckManifest(directory_).ok());
}

}  // namespace
}  // namespace colcast::models
