// tests/server/test_tracing.py reads what is sent.
#include "server/tracing/http_post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio.hpp>

namespace colcast::tracing {
namespace {

using testing::HasSubstr;

TEST(HttpPostTest, ReadsEndpoints) {
  Endpoint endpoint;
  ASSERT_TRUE(ParseEndpoint("http://collector:4318/v1/traces", &endpoint).ok());
  EXPECT_EQ(endpoint.host, "collector");
  EXPECT_EQ(endpoint.port, "4318");
  EXPECT_EQ(endpoint.target, "/v1/traces");
  Endpoint shortest;
  ASSERT_TRUE(ParseEndpoint("http://[::1]", &shortest).ok());
  EXPECT_EQ(shortest.host, "::1");
  EXPECT_EQ(shortest.port, "80");
  EXPECT_EQ(shortest.target, "/");
}

TEST(HttpPostTest, RefusesWhatIsNoEndpoint) {
  Endpoint endpoint;
  for (const char* url : {"", "collector:4318", "https://collector/", "http://", "http://a:b/",
                          "http://a/ b", "http://a:4318/x\r\nHost: b", "http://u@a/"}) {
    const Status status = ParseEndpoint(url, &endpoint);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(status.message, HasSubstr(url));
  }
}

TEST(HttpPostTest, GivesUpACollectorThatDoesNotAnswer) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  const auto loopback = boost::asio::ip::address_v4::loopback();
  tcp::acceptor listening(io, tcp::endpoint(loopback, 0));  // and accepts nobody
  const Endpoint endpoint{"127.0.0.1", std::to_string(listening.local_endpoint().port()), "/"};
  const Status hangs = PostProtobuf(endpoint, "body", std::chrono::milliseconds(50));
  EXPECT_EQ(hangs.code, StatusCode::kUnavailable);
  EXPECT_THAT(hangs.message, HasSubstr("127.0.0.1:" + endpoint.port));
  listening.close();
  EXPECT_EQ(PostProtobuf(endpoint, "body", std::chrono::seconds(5)).code, StatusCode::kUnavailable);
}

}  // namespace
}  // namespace colcast::tracing
