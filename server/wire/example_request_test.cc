// server/inference/example_request_protobuf_test.cc compares the decoder with protobuf.
#include "server/wire/example_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Input(const std::string& body) { return BytesField(2, body); }
std::string List(const std::string& body) { return BytesField(1, body); }
std::string ListWithContext(const std::string& body) { return BytesField(2, body); }
std::string AnExample(const std::string& bytes) { return BytesField(1, bytes); }
std::string Context(const std::string& bytes) { return BytesField(2, bytes); }

std::vector<std::string> Texts(const std::vector<Bytes>& all) {
  std::vector<std::string> texts;
  for (const Bytes& one : all) texts.push_back(one.ToString());
  return texts;
}

// Decodes `message` in every slicing and checks the result.
template <typename Check>
void Decode(const std::string& message, Check&& check) {
  ForEachSlicing(message, [&](const Bytes& bytes) {
    ExampleRequest request;
    const Status status = DecodeExampleRequest(bytes, "Request", 3, &request);
    ASSERT_TRUE(status.ok()) << status.message;
    check(request);
  });
}

void ExpectRefused(const std::string& message, const std::string& error) {
  ForEachSlicing(message, [&](const Bytes& bytes) {
    ExampleRequest request;
    const Status status = DecodeExampleRequest(bytes, "Request", 3, &request);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message, "malformed Request: " + error);
  });
}

TEST(DecodeExampleRequestTest, AnEmptyMessageHasNoExamples) {
  Decode("", [](const ExampleRequest& request) {
    EXPECT_THAT(request.input.examples, IsEmpty());
    EXPECT_EQ(request.input.context, "");
    EXPECT_EQ(request.rest, "");
  });
}

TEST(DecodeExampleRequestTest, ExamplesAreNotParsed) {
  Decode(Input(List(AnExample("a") + AnExample("") + AnExample("\xff"))),
         [](const ExampleRequest& request) {
           EXPECT_THAT(Texts(request.input.examples), ElementsAre("a", "", "\xff"));
         });
}

TEST(DecodeExampleRequestTest, TheRestIsEveryFieldButTheInput) {
  const std::string spec = BytesField(1, BytesField(1, "m"));
  const std::string unknown = VarintField(9, 7);
  Decode(spec + Input(List(AnExample("a"))) + unknown,
         [&](const ExampleRequest& request) { EXPECT_EQ(request.rest, spec + unknown); });
}

TEST(DecodeExampleRequestTest, MoreExamplesThanAllowedAreRefused) {
  const std::string two = List(AnExample("") + AnExample(""));
  Decode(Input(two) + Input(List(AnExample(""))),
         [](const ExampleRequest& request) { EXPECT_EQ(request.input.examples.size(), 3u); });
  ExampleRequest request;
  const Status status =
      DecodeExampleRequest(Bytes(Input(two) + Input(two)), "Request", 3, &request);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message, "the Request has more than 3 examples, which is max_request_rows");
}

TEST(DecodeExampleRequestTest, SaysWhereAMessageIsMalformed) {
  ExpectRefused("\x12\x09", "length goes past the end (field 2, byte 2 of 2)");
  ExpectRefused(Input("\x0a\x02\x0a"), "length goes past the end (field 2.1, byte 4 of 5)");
}

TEST(DecodeExampleRequestTest, SaysWhereAContextIsMalformed) {
  const std::string entry =
      BytesField(1, "age") + BytesField(2, BytesField(2, BytesField(1, "abc")));
  ExpectRefused(
      Input(ListWithContext(Context(BytesField(1, BytesField(1, entry))))),
      "the packed field's 3 bytes are not a multiple of 4 (field 2.2.2.1.1.2.2.1, byte 21 "
      "of 24)");
}

}  // namespace
}  // namespace colcast
