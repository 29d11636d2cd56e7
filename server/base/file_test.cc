#include "server/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "server/base/fake_root_testing.h"

namespace colcast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FileTest : public FakeRootTest {
 protected:
  FileTest() { std::filesystem::create_directories(root_); }

  std::string Write(const std::string& content) const {
    std::ofstream(root_ / "file", std::ios::binary) << content;
    return root_ / "file";
  }

  std::string content_;
};

TEST_F(FileTest, ReadsAllOfAFile) {
  const std::string written(100'000, 'x');
  ASSERT_TRUE(ReadFile(Write(written), &content_).ok());
  EXPECT_EQ(content_, written);
  ASSERT_TRUE(ReadFile(Write(""), &content_).ok());
  EXPECT_EQ(content_, "");
}

TEST_F(FileTest, ReadsAFileThatReportsNoSize) {
  ASSERT_TRUE(ReadFile("/proc/self/status", &content_).ok());
  EXPECT_THAT(content_, HasSubstr("VmRSS"));
}

TEST_F(FileTest, AMissingFileIsNotFound) {
  const Status status = ReadFile(root_ / "none", &content_);
  EXPECT_EQ(status.code, StatusCode::kNotFound);
  EXPECT_THAT(status.message, AllOf(HasSubstr(root_ / "none"), HasSubstr("No such file")));
}

TEST_F(FileTest, AFifoWithoutAWriterIsRefusedAtOnce) {
  const std::string path = root_ / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Status status = ReadFile(path, &content_);
  EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message, AllOf(HasSubstr(path), HasSubstr("regular file")));
}

TEST_F(FileTest, DirectoriesAndDevicesAreRefused) {
  EXPECT_EQ(ReadFile(root_, &content_).code, StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadFile("/dev/zero", &content_).code, StatusCode::kFailedPrecondition);
}

TEST_F(FileTest, AFileBeyondTheLimitIsRefused) {
  const std::string path = Write("12345");
  EXPECT_TRUE(ReadFile(path, &content_, 5).ok());
  const Status status = ReadFile(path, &content_, 4);
  EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message, AllOf(HasSubstr(path), HasSubstr("more than 4 bytes")));
}

TEST_F(FileTest, ATruncatedFileIsDataLoss) {
  File file;
  const std::string path = Write("12345678");
  ASSERT_TRUE(File::Open(path, &file).ok());
  char read[8];
  ASSERT_TRUE(file.ReadAt(2, 6, read).ok());
  EXPECT_EQ(std::string(read, 6), "345678");
  std::filesystem::resize_file(path, 4);
  EXPECT_EQ(file.ReadAt(2, 6, read).code, StatusCode::kDataLoss);
}

TEST_F(FileTest, AReplacedFileHasADifferentIdentity) {
  File file;
  const std::string path = Write("1");
  ASSERT_TRUE(File::Open(path, &file).ok());
  EXPECT_EQ(IdentityOf(path), file.identity());
  std::ofstream(root_ / "other") << "2";
  std::filesystem::rename(root_ / "other", path);
  EXPECT_NE(IdentityOf(path), file.identity());
  EXPECT_EQ(IdentityOf(root_ / "none"), FileIdentity{});
}

}  // namespace
}  // namespace colcast
