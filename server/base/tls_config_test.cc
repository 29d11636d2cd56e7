#include "server/base/tls_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace colcast {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// What a good key and certificate do is seen over connections, in tests/server/test_tls.py.
TEST(TlsConfigTest, ErrorsNameTheFileAndTheField) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "server_key is missing"},
      {"server_key: 'k'", "server_cert is missing"},
      {"server_key: 'k' server_cert: 'c' client_verify: true", "client_verify needs custom_ca"},
      {"server_key: 'k' server_cert: 'c'", "server_key is not an unencrypted PEM private key"},
      {"server_keys: 'k'", "server_keys"},
  };
  const std::string path = testing::TempDir() + "tls_config_test.pbtxt";
  for (const auto& one : kCases) {
    std::ofstream(path) << one.text;
    TlsConfig config;
    const Status status = ReadTlsConfig(path, &config);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << one.text;
    EXPECT_THAT(status.message, AllOf(StartsWith(path), HasSubstr(one.message))) << one.text;
  }
}

}  // namespace
}  // namespace colcast
