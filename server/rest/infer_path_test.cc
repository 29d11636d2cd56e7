#include "server/rest/infer_path.h"

#include <gtest/gtest.h>

#include <string>

namespace colcast::http {
namespace {

InferCall Parse(std::string_view method, std::string_view target) {
  InferCall call;
  const Status status = ParseInferPath(method, target, &call);
  EXPECT_TRUE(status.ok()) << status.message;
  return call;
}

TEST(InferPathTest, FindsTheMethod) {
  EXPECT_EQ(Parse("GET", "/v2").method, InferMethod::kServer);
  EXPECT_EQ(Parse("GET", "/v2/").method, InferMethod::kServer);
  EXPECT_EQ(Parse("GET", "/v2/health/live").method, InferMethod::kLive);
  EXPECT_EQ(Parse("GET", "/v2/health/ready").method, InferMethod::kReady);
  EXPECT_EQ(Parse("GET", "/v2/models/m").method, InferMethod::kModel);
  EXPECT_EQ(Parse("GET", "/v2/models/m/ready").method, InferMethod::kModelReady);
  EXPECT_EQ(Parse("GET", "/v2/models/m/versions/3/ready").method, InferMethod::kModelReady);
  EXPECT_EQ(Parse("POST", "/v2/models/m/infer").method, InferMethod::kInfer);
  EXPECT_EQ(Parse("POST", "/v2/models/m/versions/3/infer").method, InferMethod::kInfer);
  EXPECT_EQ(Parse("POST", "/v2/repository/index").method, InferMethod::kIndex);
}

TEST(InferPathTest, ReadsNameVersionAndSignature) {
  const ModelSpec model =
      Parse("GET", "/v2/models/a%2Fb/versions/7?x=1&signature_name=columnar%5Flate").model;
  EXPECT_EQ(model.name, "a/b");
  EXPECT_EQ(model.version, 7);
  EXPECT_EQ(model.signature_name, "columnar_late");
  EXPECT_EQ(Parse("POST", "/v2/models/m/versions/stable/infer").model.version_label, "stable");
}

TEST(InferPathTest, RefusesEverythingElse) {
  for (const std::string text :
       {"GET v2", "GET /v2x", "GET /v2/models", "GET /v2/models/", "GET /v2/models//ready",
        "GET /v2/models/m/infer", "GET /v2/models/m/config", "GET /v2/models/m/versions",
        "GET /v2/models/m/versions/3/stats", "GET /v2/models/m/labels/3", "POST /v2/models/m",
        "POST /v2/models/m/ready", "POST /v2/models/m/labels/x/infer", "POST /v2",
        "GET /v2/repository/index", "PUT /v2/models/m/infer", "GET /v2/health", "GET /v1/models/m",
        "GET "}) {
    const size_t space = text.find(' ');
    InferCall call;
    const Status status = ParseInferPath(text.substr(0, space), text.substr(space + 1), &call);
    EXPECT_EQ(status.code, StatusCode::kNotFound) << text;
  }
}

}  // namespace
}  // namespace colcast::http
