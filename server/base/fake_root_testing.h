// A machine's /proc and /sys for tests, in a temporary directory.
#ifndef COLCAST_SERVER_BASE_FAKE_ROOT_TESTING_H_
#define COLCAST_SERVER_BASE_FAKE_ROOT_TESTING_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace colcast {

class FakeRootTest : public testing::Test {
 protected:
  FakeRootTest() { std::filesystem::remove_all(root_); }
  ~FakeRootTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  const std::filesystem::path root_ = std::filesystem::path(testing::TempDir()) /
                                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_FAKE_ROOT_TESTING_H_
