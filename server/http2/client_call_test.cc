#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include "server/http2/testing.h"

namespace colcast::http2 {
namespace {

using testing::HasSubstr;
using Headers = std::vector<std::pair<std::string, std::string>>;

const Headers kBegun = {{":status", "200"}, {"content-type", "application/grpc+proto"}};

struct End {
  Status status;
  std::string answer;
};

std::string Framed(const std::string& text) {
  const MessagePrefix prefix = PrefixOf(text.size(), false);
  return std::string(prefix.begin(), prefix.end()) + text;
}

// The result of a call with this answer.
End EndOf(const Headers& headers, const std::string& bytes, const Headers& trailers,
          uint32_t http2_error = NGHTTP2_NO_ERROR) {
  End end;
  ClientCall call(1, {}, [&end](Status status, const Message& answer) {
    end = {std::move(status), answer.bytes().ToString()};
  });
  for (const auto& [name, value] : headers) call.AddHeader(name, value);
  const auto owner = std::make_shared<std::string>(bytes);
  call.Read(owner, reinterpret_cast<const uint8_t*>(owner->data()), owner->size());
  for (const auto& [name, value] : trailers) call.AddHeader(name, value);
  call.End(http2_error);
  return end;
}

TEST(ClientCallTest, AnAnswerIsAMessageAndAStatus) {
  const End end = EndOf(kBegun, Framed("hello"), {{"grpc-status", "0"}});
  EXPECT_TRUE(end.status.ok());
  EXPECT_EQ(end.answer, "hello");
  EXPECT_TRUE(EndOf(kBegun, Framed(""), {{"grpc-status", "0"}}).status.ok());
}

TEST(ClientCallTest, AnErrorIsDecodedAndBringsNoAnswer) {
  const End end = EndOf(kBegun, Framed("hello"),
                        {{"grpc-status", "3"}, {"grpc-message", "not %C3%A9, 100%25"}});
  EXPECT_EQ(end.status.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(end.status.message, "not \xc3\xa9, 100%");
  EXPECT_EQ(end.answer, "");
  for (const char* code : {"17", "-1", "x", "", "99999999999"}) {
    EXPECT_EQ(EndOf(kBegun, "", {{"grpc-status", code}}).status.code, StatusCode::kUnknown);
  }
}

TEST(ClientCallTest, NoneTwoOrHalfAMessageAreNoAnswer) {
  const Headers ok = {{"grpc-status", "0"}};
  const std::string framed = Framed("hello");
  for (const std::string& bytes :
       {std::string(), framed.substr(0, 4), framed.substr(0, 9), framed + framed, framed + "x",
        "\x02" + framed.substr(1), "\x01" + framed.substr(1)}) {
    EXPECT_EQ(EndOf(kBegun, bytes, ok).status.code, StatusCode::kInternal) << bytes;
  }
}

TEST(ClientCallTest, OtherAnswersThanGrpcBecomeErrorsByTheirHttpStatus) {
  const std::pair<const char*, StatusCode> codes[] = {
      {"400", StatusCode::kInternal},         {"401", StatusCode::kUnauthenticated},
      {"403", StatusCode::kPermissionDenied}, {"404", StatusCode::kUnimplemented},
      {"415", StatusCode::kUnknown},          {"429", StatusCode::kUnavailable},
      {"503", StatusCode::kUnavailable},      {"200", StatusCode::kUnknown}};
  for (const auto& [http, code] : codes) {
    const End end = EndOf({{":status", http}, {"content-type", "text/html"}}, "<p>no", {});
    EXPECT_EQ(end.status.code, code) << http;
    EXPECT_THAT(end.status.message, HasSubstr(http));
  }
  // A proxy's page is not an answer, even with gRPC headers.
  EXPECT_EQ(EndOf({{":status", "503"}, {"content-type", "text/html"}, {"grpc-status", "0"}}, "", {})
                .status.code,
            StatusCode::kUnavailable);
}

TEST(ClientCallTest, AResetIsToldByItsCode) {
  const std::pair<uint32_t, StatusCode> codes[] = {
      {NGHTTP2_CANCEL, StatusCode::kCancelled},
      {NGHTTP2_ENHANCE_YOUR_CALM, StatusCode::kResourceExhausted},
      {NGHTTP2_PROTOCOL_ERROR, StatusCode::kInternal}};
  for (const auto& [error, code] : codes) {
    EXPECT_EQ(EndOf(kBegun, Framed("hello"), {}, error).status.code, code);
  }
  EXPECT_TRUE(EndOf(kBegun, Framed("a"), {{"grpc-status", "0"}}, NGHTTP2_CANCEL).status.ok());
}

}  // namespace
}  // namespace colcast::http2
