#include "server/http2/target.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>

namespace colcast::http2 {
namespace {

Target Parsed(const std::string& text) {
  Target target;
  EXPECT_TRUE(Target::Parse(text, &target).ok()) << text;
  return target;
}

std::vector<Address> AddressesOf(const std::string& text) {
  std::vector<Address> addresses;
  EXPECT_TRUE(Parsed(text).Resolve(&addresses).ok()) << text;
  return addresses;
}

TEST(TargetTest, AHostAndAPort) {
  EXPECT_EQ(Parsed("server:8500").authority(), "server:8500");
  const auto addresses = AddressesOf("127.0.0.1:8500");
  ASSERT_EQ(addresses.size(), 1u);
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(addresses[0].bytes);
  EXPECT_EQ(v4.sin_family, AF_INET);
  EXPECT_EQ(ntohs(v4.sin_port), 8500);
  EXPECT_EQ(AddressesOf("[::1]:8500")[0].bytes.ss_family, AF_INET6);
}

TEST(TargetTest, AUnixSocket) {
  for (const char* text : {"unix:/run/s", "unix:///run/s"}) {
    EXPECT_EQ(Parsed(text).authority(), "localhost");
    const auto addresses = AddressesOf(text);
    EXPECT_STREQ(reinterpret_cast<const sockaddr_un&>(addresses[0].bytes).sun_path, "/run/s");
  }
}

TEST(TargetTest, AnythingElseIsRefused) {
  for (const std::string& text :
       {std::string("host"), std::string("host:"), std::string(":8500"), std::string("host:0"),
        std::string("host:65536"), std::string("host:85oo"), std::string("::1:8500"),
        std::string("unix:"), "unix:/" + std::string(200, 'x'), std::string()}) {
    Target target;
    EXPECT_EQ(Target::Parse(text, &target).code, StatusCode::kInvalidArgument) << text;
  }
}

TEST(TargetTest, ANameThatNobodyHasIsUnavailable) {
  std::vector<Address> addresses;
  const Status status = Parsed("nobody.invalid:8500").Resolve(&addresses);
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_NE(status.message.find("nobody.invalid:8500"), std::string::npos);
}

}  // namespace
}  // namespace colcast::http2
