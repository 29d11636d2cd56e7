#include "server/rpc/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace colcast::rpc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~UnixSocketTest() override { fs::remove_all(folder_); }

  // Listens at `path` until the end of the test's process.
  static void Listen(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int server = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(server, 1), 0);
  }
  Status Prepare(const std::string& path) { return UnixSocket::Prepare(path, &socket_); }

  const fs::path folder_ = fs::path(testing::TempDir()) / "unix_socket_test";
  const std::string path_ = folder_ / "s";
  UnixSocket socket_;
};

TEST_F(UnixSocketTest, APathThatCannotBeASocketIsAnError) {
  std::ofstream(folder_ / "file") << "text";
  const struct {
    std::string path;
    StatusCode code;
    const char* message;
  } kCases[] = {
      {folder_ / std::string(200, 's'), StatusCode::kInvalidArgument, "at most 106 are allowed"},
      {folder_ / "file", StatusCode::kAlreadyExists, "the file there is not a socket"},
      {folder_ / "missing" / "s", StatusCode::kUnavailable, "No such file or directory"},
  };
  for (const auto& one : kCases) {
    const Status status = Prepare(one.path);
    EXPECT_EQ(status.code, one.code) << one.path;
    EXPECT_THAT(status.message, HasSubstr(one.message));
    EXPECT_THAT(status.message, HasSubstr(one.path));
  }
}

TEST_F(UnixSocketTest, IsInUseWhileSomeoneListens) {
  ASSERT_TRUE(Prepare(path_).ok());
  EXPECT_FALSE(socket_.in_use());
  Listen(path_);
  ASSERT_TRUE(Prepare(path_).ok());
  EXPECT_TRUE(socket_.in_use());
}

TEST_F(UnixSocketTest, OneNewcomerAtATime) {
  ASSERT_TRUE(Prepare(path_).ok());
  Listen(socket_.listening_path());
  UnixSocket second;
  const Status status = UnixSocket::Prepare(path_, &second);
  EXPECT_EQ(status.code, StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message, HasSubstr("another server is starting"));
  ASSERT_TRUE(socket_.Publish().ok());
  EXPECT_TRUE(UnixSocket::Prepare(path_, &second).ok());
}

TEST_F(UnixSocketTest, TakesItsPlaceAndLeavesIt) {
  ASSERT_TRUE(Prepare(path_).ok());
  EXPECT_EQ(socket_.Publish().code, StatusCode::kUnavailable);  // no server listens yet
  Listen(socket_.listening_path());
  ASSERT_TRUE(socket_.Publish().ok());
  EXPECT_TRUE(fs::is_socket(path_));
  EXPECT_FALSE(fs::exists(socket_.listening_path()));
  socket_.Remove();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(UnixSocketTest, ASuccessorsSocketStays) {
  ASSERT_TRUE(Prepare(path_).ok());
  Listen(socket_.listening_path());
  ASSERT_TRUE(socket_.Publish().ok());
  UnixSocket successor;
  ASSERT_TRUE(UnixSocket::Prepare(path_, &successor).ok());
  Listen(successor.listening_path());
  ASSERT_TRUE(successor.Publish().ok());
  socket_.Remove();
  EXPECT_TRUE(fs::is_socket(path_));
}

}  // namespace
}  // namespace colcast::rpc
