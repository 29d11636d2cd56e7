#include "server/models/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace colcast::models {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

TEST_F(ManifestTest, AWholeVersionIsOkWithWhateverElseIsInIt) {
  Write("assets.extra/tf_serving_warmup_requests", "added by hand");
  Write("batching_params.pbtxt", "added by hand");
  const Status status = CheckManifest(directory_);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(ManifestTest, AFileThatIsMissingOrShortIsNamed) {
  Write("assets/words.txt", "hel");
  ExpectNotWhole("assets/words.txt", "has 3 bytes where the export wrote 6");
  fs::remove(directory_ / "assets/words.txt");
  ExpectNotWhole("assets/words.txt", "is missing");
}

// Some copying tools allocate a file's full size first.
TEST_F(ManifestTest, AFileOfTheRightSizeWithOtherContentIsNamed) {
  Write("assets/words.txt", std::string("hel\0\0\0", 6));
  ExpectNotWhole("assets/words.txt", "has the checksum ");
}

// Contents are not compared, because TensorFlow checks each tensor that it restores.
TEST_F(ManifestTest, VariablesOfTheSameSizeMayBeOthers) {
  Write("variables/variables.data-00000-of-00001", "4321");
  EXPECT_TRUE(CheckManifest(directory_).ok());
  Write("variables/variables.data-00000-of-00001", "43");
  ExpectNotWhole("variables/variables.data-00000-of-00001", "has 2 bytes");
}

TEST_F(ManifestTest, ARecordThatEndsTooEarlyIsNamed) {
  Write("assets.extra/colcast.json", R"({"signatures": {}, "fil)");
  ExpectNotWhole("assets.extra/colcast.json", "is not JSON");
}

TEST_F(ManifestTest, WithoutAListNothingIsChecked) {
  fs::remove(directory_ / "assets/words.txt");
  Write("assets.extra/colcast.json", R"({"signatures": {}})");
  EXPECT_TRUE(CheckManifest(directory_).ok());
  fs::remove_all(directory_ / "assets.extra");
  EXPECT_TRUE(CheckManifest(directory_).ok());
}

}  // namespace
}  // namespace colcast::models
