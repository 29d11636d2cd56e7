#include "server/http1/router.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace colcast::http {
namespace {

using std::chrono::milliseconds;

class TestExchange final : public Exchange {
 public:
  TestExchange(std::string method, std::string target, Response* response) : response_(response) {
    request_.method = std::move(method);
    request_.target = std::move(target);
  }
  Request& request() override { return request_; }
  bool cancelled() const override { return false; }
  void Answer(Response response) override { *response_ = std::move(response); }

 private:
  Request request_;
  Response* const response_;
};

class RouterTest : public testing::Test {
 protected:
  RouterTest() {
    router_.AddPage("/", [] { return Body("page /"); });
    router_.AddPage("/counted", [this] {
      cpu_ += milliseconds(5);
      return Body(std::to_string(++made_));
    });
    router_.AddPage("/v1/page", [] { return Body("page /v1/page"); });
    router_.AddTree("/v1/", [](const std::shared_ptr<Exchange>& exchange) {
      exchange->Answer(Body("tree " + exchange->request().target));
    });
  }
  static Response Body(std::string body) {
    Response response;
    response.body = std::move(body);
    return response;
  }
  Response Route(const std::string& method, const std::string& target) const {
    Response response;
    router_.Route(std::make_shared<TestExchange>(method, target, &response));
    return response;
  }

  int made_ = 0;
  std::chrono::nanoseconds cpu_{0};
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  Router router_{PageClocks{[this] { return now_; }, [this] { return cpu_; }}};
};

TEST_F(RouterTest, APageThatHasTaken100MsOfASecondIsSharedFor100Ms) {
  constexpr int kFresh = 21;  // of 5 ms each
  for (int i = 1; i <= kFresh; ++i) {
    EXPECT_EQ(Route("GET", "/counted").body, std::to_string(i));
  }
  now_ += milliseconds(99);
  EXPECT_EQ(Route("GET", "/counted").body, std::to_string(kFresh));
  now_ += milliseconds(1);
  EXPECT_EQ(Route("GET", "/counted").body, std::to_string(kFresh + 1));
  EXPECT_EQ(Route("GET", "/counted").body, std::to_string(kFresh + 1));
  now_ += milliseconds(900);  // the next second
  EXPECT_EQ(Route("GET", "/counted").body, std::to_string(kFresh + 2));
  EXPECT_EQ(Route("GET", "/counted").body, std::to_string(kFresh + 3));
}

TEST_F(RouterTest, RoutesByMethodAndPath) {
  const struct {
    const char* method;
    const char* target;
    int code;
    const char* body;
  } kCases[] = {
      {"GET", "/", 200, "page /"},
      {"HEAD", "/?query", 200, "page /"},
      {"GET", "/v1/page", 200, "page /v1/page"},
      {"GET", "/v1/models/m", 200, "tree /v1/models/m"},
      {"POST", "/V1/models/m:predict", 200, "tree /V1/models/m:predict"},
      {"DELETE", "/v1/?a", 200, "tree /v1/?a"},
      {"GET", "/v1", 404, "{ \"error\": \"Not found: /v1\" }"},
      {"GET", "/PAGE?q", 404, "{ \"error\": \"Not found: /PAGE\" }"},
      {"GET", "", 404, "{ \"error\": \"Not found: \" }"},
      {"POST", "/", 405, "{ \"error\": \"POST of a read-only page\" }"},
  };
  for (const auto& one : kCases) {
    const Response response = Route(one.method, one.target);
    EXPECT_EQ(response.code, one.code) << one.method << ' ' << one.target;
    EXPECT_EQ(response.body, one.body) << one.method << ' ' << one.target;
  }
}

TEST_F(RouterTest, ReadsBodiesOnlyForHandlersThatWantThem) {
  router_.AddTree(
      "/short/", [](const std::shared_ptr<Exchange>&) {},
      [](const Request& head) { return head.method == "POST"; });
  const struct {
    const char* method;
    const char* target;
    bool wanted;
  } kCases[] = {
      {"POST", "/v1/models/m:predict", true},
      {"POST", "/short/x", true},
      {"GET", "/short/x", false},
      {"POST", "/v1/page?q", false},
      {"POST", "/nowhere", false},
  };
  for (const auto& one : kCases) {
    Request head;
    head.method = one.method;
    head.target = one.target;
    EXPECT_EQ(router_.WantsBody(head), one.wanted) << one.method << ' ' << one.target;
  }
}

TEST_F(RouterTest, ARefusalListsThePagesMethods) {
  const Response response = Route("PUT", "/");
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers[0], std::make_pair(std::string("Allow"), std::string("GET, HEAD")));
}

}  // namespace
}  // namespace colcast::http
