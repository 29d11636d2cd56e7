#include "server/http1/message.h"

#include <gtest/gtest.h>

namespace colcast::http {
namespace {

TEST(OriginForm, LacksSchemeAndAuthority) {
  const struct {
    const char* target;
    const char* origin_form;
  } kCases[] = {
      {"/v1/models/m", "/v1/models/m"},
      {"http://host/v1/models/m", "/v1/models/m"},
      {"HTTPS://host:8501/v1/models/m?a=http://b", "/v1/models/m?a=http://b"},
      {"http://host", "/"},
      {"http://host?a", "/?a"},
      {"http:/v1", "http:/v1"},
      {"ftp://host/a", "ftp://host/a"},
      {"*", "*"},
      {"", ""},
  };
  for (const auto& [target, origin_form] : kCases) EXPECT_EQ(OriginForm(target), origin_form);
}

TEST(HttpCode, MatchesTfServing) {
  const struct {
    StatusCode code;
    int http_code;
  } kCases[] = {
      {StatusCode::kOk, 200},
      {StatusCode::kInvalidArgument, 400},
      {StatusCode::kFailedPrecondition, 400},
      {StatusCode::kOutOfRange, 400},
      {StatusCode::kUnauthenticated, 401},
      {StatusCode::kPermissionDenied, 403},
      {StatusCode::kNotFound, 404},
      {StatusCode::kAlreadyExists, 409},
      {StatusCode::kAborted, 409},
      {StatusCode::kResourceExhausted, 429},
      {StatusCode::kCancelled, 499},
      {StatusCode::kUnknown, 500},
      {StatusCode::kInternal, 500},
      {StatusCode::kDataLoss, 500},
      {StatusCode::kUnimplemented, 501},
      {StatusCode::kUnavailable, 503},
      {StatusCode::kDeadlineExceeded, 504},
  };
  for (const auto& [code, http_code] : kCases) EXPECT_EQ(HttpCode(code), http_code);
}

TEST(ErrorResponse, IsJsonForAnyMessage) {
  const struct {
    const char* message;
    const char* body;
  } kCases[] = {
      {"no", "{ \"error\": \"no\" }"},
      {"\"a\"\n\\", "{ \"error\": \"\\\"a\\\"\\n\\\\\" }"},
      {"caf\xC3\xA9", "{ \"error\": \"caf\xC3\xA9\" }"},
      {"\xFF\xFE", "{ \"error\": \"??\" }"},
  };
  for (const auto& [message, body] : kCases) EXPECT_EQ(ErrorResponse(400, message).body, body);
  EXPECT_EQ(ErrorResponse(NotFound("no")).code, 404);
}

TEST(Request, ThePathEndsAtTheQuestionMark) {
  Request request;
  for (const auto& [target, path] : {std::pair("/a", "/a"), {"/a?b?c", "/a"}, {"?", ""}}) {
    request.target = target;
    EXPECT_EQ(request.path(), path);
  }
}

TEST(Gzip, IsSentOnlyToClientsThatAcceptIt) {
  for (const char* yes : {"gzip", "deflate, gzip", "gzip;q=0.5", "br;q=1.0, *;q=0.1", " gzip "}) {
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "gzip;q=0", "gzip; q=0.000, br", "xgzip", ",,;"}) {
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  }
}

}  // namespace
}  // namespace colcast::http
