#include "server/protos/text_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/protos/ssl_config.pb.h"

namespace colcast {
namespace {

using tensorflow::serving::SSLConfig;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TextProtoTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  ~TextProtoTest() override { std::filesystem::remove(path_); }

  const std::string path_ = ::testing::TempDir() + "/text_proto_test.cfg";
};

TEST_F(TextProtoTest, ReadsFields) {
  Write("server_key: 'a' 'b'  # strings side by side are one\nclient_verify: true\n");
  SSLConfig config;
  ASSERT_TRUE(ReadTextProto(path_, &config).ok());
  EXPECT_EQ(config.server_key(), "ab");
  EXPECT_TRUE(config.client_verify());
}

TEST_F(TextProtoTest, ErrorsNameFileMessageLineAndColumn) {
  Write("server_key: 'a'\nserver_kay: 'b'\n");
  SSLConfig config;
  const Status status = ReadTextProto(path_, &config);
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message, AllOf(HasSubstr(path_), HasSubstr("tensorflow.serving.SSLConfig"),
                                    HasSubstr(":2:11: Error parsing"), HasSubstr("server_kay")));
}

TEST_F(TextProtoTest, AMissingFileIsNotFound) {
  SSLConfig config;
  const Status status = ReadTextProto("/nowhere/ssl.cfg", &config);
  EXPECT_EQ(status.code, StatusCode::kNotFound);
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("/nowhere/ssl.cfg"), HasSubstr("No such file or directory")));
}

TEST_F(TextProtoTest, TheErrorSaysThatAFileIsBinary) {
  Write(
      std::string("\x7f"
                  "ELF\0",
                  5));
  SSLConfig config;
  EXPECT_THAT(ReadTextProto(path_, &config).message,
              HasSubstr(path_ + " is binary, expected tensorflow.serving.SSLConfig as text"));
}

TEST_F(TextProtoTest, ADirectoryIsRefused) {
  SSLConfig config;
  EXPECT_FALSE(ReadTextProto(::testing::TempDir(), &config).ok());
}

}  // namespace
}  // namespace colcast
