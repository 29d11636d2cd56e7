#include "server/http1/router.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/base/thread.h"

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
    router_.AddPage("/slow", [this] {
      const auto end = CpuTimeOfThisThread() + milliseconds(5);
      while (CpuTimeOfThisThread() < end) {
      }
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
  Router router_;
};

TEST_F(RouterTest, RequestsShareASlowPage) {
  int asked = 1;
  while (Route("GET", "/slow").body == std::to_string(asked)) ++asked;
  EXPECT_GE(asked, 20);  // shared once rendering has taken 100 ms
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
