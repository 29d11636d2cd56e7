#include "server/sender/sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/http2/grpc.h"

// tests/loadtest/test_open_loop.py tests the sender itself.
namespace colcast::sender {
namespace {

using testing::HasSubstr;
using Headers = std::vector<std::pair<std::string, std::string>>;

std::string Framed(const std::string& text) {
  const http2::MessagePrefix prefix = http2::PrefixOf(text.size(), false);
  return std::string(prefix.begin(), prefix.end()) + text;
}

Answer AnswerOf(const Headers& headers, const std::string& bytes) {
  Answer answer;
  for (const auto& [name, value] : headers) answer.AddHeader(name, value);
  answer.AddData(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return answer;
}

// A gRPC answer with this grpc-status.
Answer Grpc(const std::string& status, const std::string& bytes) {
  return AnswerOf({{":status", "200"},
                   {"content-type", "application/grpc+proto"},
                   {"grpc-status", status},
                   {"grpc-message", "not %C3%A9, 100%25"}},
                  bytes);
}

TEST(AnswerTest, ACompleteAnswerIsOkEvenIfTheStreamIsCancelled) {
  for (const char* message : {"hello", ""}) {
    const Answer answer = Grpc("0", Framed(message));
    EXPECT_TRUE(answer.StatusOf(NGHTTP2_NO_ERROR).ok());
    EXPECT_TRUE(answer.StatusOf(NGHTTP2_CANCEL).ok());
    EXPECT_EQ(answer.message(), message);
  }
}

TEST(AnswerTest, AnErrorIsDecoded) {
  const Status status = Grpc("3", Framed("hello")).StatusOf(NGHTTP2_NO_ERROR);
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message, "not \xc3\xa9, 100%");
  for (const char* code : {"17", "-1", "x", "", "99999999999"}) {
    EXPECT_EQ(Grpc(code, "").StatusOf(NGHTTP2_NO_ERROR).code, StatusCode::kUnknown);
  }
}

TEST(AnswerTest, OnlyOneCompleteUncompressedMessageIsAnAnswer) {
  const std::string framed = Framed("hello");
  for (const std::string& bytes : {std::string(), framed.substr(0, 4), framed.substr(0, 9),
                                   framed + framed, framed + "x", "\x01" + framed.substr(1)}) {
    EXPECT_EQ(Grpc("0", bytes).StatusOf(NGHTTP2_NO_ERROR).code, StatusCode::kInternal) << bytes;
  }
}

TEST(AnswerTest, AnAnswerThatIsNotGrpcIsAnError) {
  for (const auto& [http, code] : {std::pair("404", StatusCode::kUnknown),
                                   {"429", StatusCode::kUnavailable},
                                   {"503", StatusCode::kUnavailable},
                                   {"200", StatusCode::kUnknown}}) {
    // A proxy's page is not an answer, even with gRPC headers.
    const Answer page =
        AnswerOf({{":status", http}, {"content-type", "text/html"}, {"grpc-status", "0"}}, "<p>no");
    const Status status = page.StatusOf(NGHTTP2_NO_ERROR);
    EXPECT_EQ(status.code, code) << http;
    EXPECT_THAT(status.message, HasSubstr(http));
  }
}

TEST(AnswerTest, AResetWithoutAStatusIsAnError) {
  for (const auto& [error, code] : {std::pair(NGHTTP2_REFUSED_STREAM, StatusCode::kUnavailable),
                                    {NGHTTP2_PROTOCOL_ERROR, StatusCode::kInternal}}) {
    EXPECT_EQ(AnswerOf({{":status", "200"}, {"content-type", "application/grpc"}}, Framed("a"))
                  .StatusOf(error)
                  .code,
              code);
  }
}

}  // namespace
}  // namespace colcast::sender
