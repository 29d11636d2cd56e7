#include "server/tracing/span_exporter.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <boost/asio.hpp>
#include <cstring>
#include <future>
#include <string>
#include <string_view>
#include <thread>

namespace colcast::tracing {

std::promise<void> lookup_may_end;

namespace {

using std::chrono::hours;

TEST(SpanExporterTest, SendsAFullBatchImmediatelyAndTheRestOnDestruction) {
  std::promise<size_t> first;
  size_t calls = 0;
  size_t spans = 0;
  {
    SpanExporter exporter({100, 3, hours(1)}, [&](const std::vector<Span>& sent) {
      if (++calls == 1) first.set_value(sent.size());
      spans += sent.size();
      return OkStatus();
    });
    exporter.Add(std::vector<Span>(3));
    EXPECT_EQ(first.get_future().get(), 3u);
    exporter.Add(std::vector<Span>(1));
  }
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(spans, 4u);
}

TEST(SpanExporterTest, DropsSpansThatDoNotFitWhileTheCollectorHangs) {
  std::promise<void> started, released;
  SpanExporter exporter({4, 1, hours(1)}, [&](const std::vector<Span>& sent) {
    if (sent.front().name == "first") {
      started.set_value();
      released.get_future().wait();
    }
    return OkStatus();
  });
  std::vector<Span> first(1);
  first[0].name = "first";
  exporter.Add(first);
  started.get_future().wait();
  exporter.Add(std::vector<Span>(3));
  exporter.Add(std::vector<Span>(2));  // all spans of a call are queued, or none
  exporter.Add(std::vector<Span>(1));
  EXPECT_EQ(exporter.dropped(), 2);
  EXPECT_EQ(exporter.sent(), 0);
  released.set_value();
}

TEST(SpanExporterTest, CountsSpansThatCouldNotBeSentAndContinues) {
  std::promise<void> sent;
  int calls = 0;
  SpanExporter exporter({100, 2, hours(1)}, [&](const std::vector<Span>&) {
    if (++calls > 1) sent.set_value();
    return calls > 1 ? OkStatus() : Unavailable("nobody is there");
  });
  // Two batches: the exporter does not send the second after the first has failed.
  exporter.Add(std::vector<Span>(4));
  while (exporter.dropped() < 4) std::this_thread::yield();
  exporter.Add(std::vector<Span>(2));
  sent.get_future().wait();
  EXPECT_EQ(exporter.dropped(), 4);
}

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

TEST(HttpPostTest, RefusesUrlsThatAreNotEndpoints) {
  Endpoint endpoint;
  for (const char* url : {"", "collector:4318", "https://collector/", "http://", "http://a:b/",
                          "http://a/ b", "http://a:4318/x\r\nHost: b", "http://u@a/"}) {
    const Status status = ParseEndpoint(url, &endpoint);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(status.message, testing::HasSubstr(url));
  }
}

TEST(HttpPostTest, GivesUpOnACollectorThatDoesNotAnswer) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  const auto loopback = boost::asio::ip::address_v4::loopback();
  tcp::acceptor listening(io, tcp::endpoint(loopback, 0));  // never accepts a connection
  const Endpoint endpoint{"127.0.0.1", std::to_string(listening.local_endpoint().port()), "/"};
  const Status hangs = PostProtobuf(endpoint, "body", std::chrono::milliseconds(50));
  EXPECT_EQ(hangs.code, StatusCode::kUnavailable);
  EXPECT_THAT(hangs.message, testing::HasSubstr("127.0.0.1:" + endpoint.port));
  listening.close();
  EXPECT_EQ(PostProtobuf(endpoint, "body", std::chrono::seconds(5)).code, StatusCode::kUnavailable);
}

TEST(HttpPostTest, RefusesAnAnswerThatIsNotHttp) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  tcp::acceptor listening(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  const Endpoint endpoint{"127.0.0.1", std::to_string(listening.local_endpoint().port()), "/"};
  for (const char* answer : {"ICY 200 OK\r\n", "HTTP/1.1 yes\r\n", "HTTP/1.1 200 OK\r\n"}) {
    std::thread collector([&] {
      tcp::socket socket = listening.accept();
      std::string request;
      boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "\r\n\r\nbody");
      boost::asio::write(socket, boost::asio::buffer(answer, std::strlen(answer)));
    });
    const Status status = PostProtobuf(endpoint, "body", std::chrono::seconds(5));
    collector.join();
    const bool is_http = std::string_view(answer) == "HTTP/1.1 200 OK\r\n";
    EXPECT_EQ(status.ok(), is_http) << answer;
    EXPECT_THAT(status.message, testing::HasSubstr(is_http ? "" : "is not HTTP/1"));
  }
}

TEST(HttpPostTest, DoesNotWaitForALookupThatHangs) {
  const Endpoint endpoint{"hangs.invalid", "4318", "/"};
  const Status late = PostProtobuf(endpoint, "body", std::chrono::milliseconds(20));
  EXPECT_EQ(late.code, StatusCode::kUnavailable);
  EXPECT_THAT(late.message, testing::HasSubstr("hangs.invalid:4318/: its name was not resolved"));
  const Status again = PostProtobuf(endpoint, "body", std::chrono::milliseconds(20));
  EXPECT_THAT(again.message, testing::HasSubstr("the lookup of its name hangs"));
  lookup_may_end.set_value();
}

}  // namespace
}  // namespace colcast::tracing

// Replaces the C library's function: the lookup of hangs.invalid waits for the test.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  if (std::string_view(host) == "hangs.invalid") {
    colcast::tracing::lookup_may_end.get_future().wait();
    return EAI_NONAME;
  }
  const auto next = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(host, port, hints, found);
}
