// Tests errors and limits. server/inference/example_request_protobuf_test.cc compares the decoded
// values with protobuf's.
#include "server/wire/example_request.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/testing.h"

namespace colcast {
namespace {

// An "input" with an example_list of these records.
std::string Input(const std::string& examples) { return BytesField(2, BytesField(1, examples)); }

TEST(DecodeExampleRequestTest, MoreExamplesThanAllowedAreRefused) {
  const std::string two = Input(BytesField(1, "") + BytesField(1, "no Example"));
  ExampleRequest request;
  ASSERT_TRUE(
      DecodeExampleRequest(Bytes(two + Input(BytesField(1, ""))), "Request", 3, &request).ok());
  EXPECT_EQ(request.input.examples.size(), 3u);
  const Status status = DecodeExampleRequest(Bytes(two + two), "Request", 3, &request);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message, "the Request has more than 3 examples, which is max_request_rows");
}

TEST(DecodeExampleRequestTest, ErrorsSayWhereTheMessageIsMalformed) {
  ForEachSlicing(BytesField(2, "\x0a\x02\x0a"), [&](const Bytes& bytes) {
    ExampleRequest request;
    const Status status = DecodeExampleRequest(bytes, "Request", 3, &request);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message,
              "malformed Request: length goes past the end (field 2.1, byte 4 of 5)");
  });
}

}  // namespace
}  // namespace colcast
