#include "server/tables/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

namespace colcast::tables {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    Write(std::string(100'000, 'a'));
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Write(const std::string& bytes) const { std::ofstream(path_) << bytes; }
  std::shared_ptr<const MappedFile> Open() const {
    std::shared_ptr<const MappedFile> file;
    const Status status = MappedFile::Open(path_, &file);
    EXPECT_TRUE(status.ok()) << status.message;
    return file;
  }
  static int64_t Sum(const MappedFile& file) {
    return std::accumulate(file.bytes().begin(), file.bytes().end(), int64_t{0});
  }

  const std::string directory_ =
      ::testing::TempDir() + "/mapped_file_test_" + std::to_string(getpid());
  const std::string path_ = directory_ + "/file";
};

TEST_F(MappedFileTest, CopyAndEvictCopiesARangeOrFails) {
  Write("0123456789");
  const auto file = Open();
  file->ReadSparingly();
  EXPECT_TRUE(file->reads_sparingly());
  std::string copy(4, ' ');
  EXPECT_TRUE(file->CopyAndEvict(3, 4, copy.data()));
  EXPECT_EQ(copy, "3456");
  EXPECT_EQ(file->bytes(), "0123456789");
  EXPECT_FALSE(file->CopyAndEvict(8, 4, copy.data())) << "two bytes are missing";
}

TEST_F(MappedFileTest, ATruncatedFileReadsAsZerosAndFailsItsCheck) {
  const auto file = Open();
  fs::resize_file(path_, 10'000);
  EXPECT_LE(Sum(*file), 12'288 * 'a');
  const Status status = file->Check();
  EXPECT_EQ(status.code, StatusCode::kDataLoss);
  EXPECT_THAT(status.message, HasSubstr(path_));
  Write(std::string(100'000, 'a'));
  EXPECT_FALSE(file->Check().ok()) << "its pages may be zeros";
}

TEST_F(MappedFileTest, AModifiedFileFailsItsCheck) {
  const auto file = Open();
  fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto old = Open();
  EXPECT_TRUE(old->Check().ok());
  std::fstream(path_, std::ios::in | std::ios::out) << "b";
  EXPECT_FALSE(old->Check().ok());
  EXPECT_FALSE(file->Check().ok());
}

TEST_F(MappedFileTest, AReplacedFileStaysMappedUnchanged) {
  const auto file = Open();
  std::ofstream(directory_ + "/new") << std::string(50, 'b');
  fs::rename(directory_ + "/new", path_);
  EXPECT_EQ(Sum(*file), 100'000 * 'a');
  EXPECT_TRUE(file->Check().ok());
}

TEST_F(MappedFileTest, AFileWithAResetModificationTimeHasChanged) {
  fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto time = fs::last_write_time(path_);
  const auto file = Open();
  EXPECT_TRUE(file->Check().ok());
  const int64_t changed = file->changed();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the resolution of file times
  std::fstream(path_, std::ios::in | std::ios::out) << "b";
  fs::last_write_time(path_, time);
  EXPECT_TRUE(file->Check().ok());
  EXPECT_NE(file->changed(), changed);
}

TEST_F(MappedFileTest, ATouchedFilePassesItsCheckOnceAccepted) {
  const auto file = Open();
  const int64_t before = file->changed();
  fs::last_write_time(path_, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(file->Check().code, StatusCode::kDataLoss);
  file->Accept(before);
  EXPECT_FALSE(file->Check().ok()) << "it has changed since";
  file->Accept(file->changed());
  EXPECT_TRUE(file->Check().ok());
  file->SetFailed();
  file->Accept(file->changed());
  EXPECT_FALSE(file->Check().ok());
}

TEST_F(MappedFileTest, OneOfSeveralModelsCannotAcceptATouchedFile) {
  const auto file = Open();
  file->AddModel();
  file->AddModel();
  fs::last_write_time(path_, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(file->Check().ok());
  file->Accept(file->changed());
  EXPECT_FALSE(file->Check().ok());
  file->RemoveModel();
  file->Accept(file->changed());
  EXPECT_TRUE(file->Check().ok());
}

TEST_F(MappedFileTest, BytesThatWereReadAreResident) {
  const auto file = Open();
  Sum(*file);
  EXPECT_EQ(file->Resident(0, 100'000), 100'000);
  EXPECT_EQ(file->Resident(5'000, 10), 10);
  file->Leave(0, 100'000);
  EXPECT_EQ(Sum(*file), 100'000 * 'a');
}

TEST(BusErrorGuardDeathTest, ABusErrorOutsideTheGuardEndsTheProcess) {
  std::atomic<bool> failed{false};
  int byte = 0;
  const BusErrorGuard guard(&byte, sizeof(byte), &failed);
  EXPECT_EXIT(raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace colcast::tables
