#include <gtest/gtest.h>

#include <string>

#include "server/wire/data_type.h"
#include "server/wire/schema.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;

// "" for a message that protobuf would parse, otherwise "PATH: REASON".
std::string Check(const std::string& message, const MessageSchema& schema, int depth = 100) {
  Malformed malformed;
  if (CheckMessage(Reader(Bytes(message)), schema, depth, &malformed)) return "";
  return malformed.path + ": " + malformed.reason;
}

std::string Input(const std::string& key, const std::string& tensor) {
  return BytesField(2, BytesField(1, key) + BytesField(2, tensor));
}

TEST(CheckMessageTest, WellFormedMessagesPass) {
  EXPECT_EQ(Check("", kPredictRequest), "");
  EXPECT_EQ(Check(BytesField(1, BytesField(1, "model")) + Input("age", VarintField(1, DT_INT64)),
                  kPredictRequest),
            "");
  EXPECT_EQ(Check(BytesField(10, Varints({1, 300})), kTensorProto), "") << "packed";
  EXPECT_EQ(Check(VarintField(10, 1), kTensorProto), "") << "not packed";
}

TEST(CheckMessageTest, UnknownFieldsAndKnownOnesOfAnotherTypeAreSkipped) {
  EXPECT_EQ(Check(VarintField(99, 1) + BytesField(98, "\xff"), kPredictRequest), "");
  EXPECT_EQ(Check(VarintField(2, 7), kPredictRequest), "") << "inputs as a number";
}

TEST(CheckMessageTest, ThePathLeadsToWhatIsBroken) {
  EXPECT_EQ(Check(Input("age", BytesField(5, "abc")), kPredictRequest),
            "inputs[\"age\"].value.float_val: the packed field's 3 bytes are not a multiple of 4");
  EXPECT_EQ(
      Check(Input("age", BytesField(12, "123456789")), kPredictRequest),
      "inputs[\"age\"].value.dcomplex_val: the packed field's 9 bytes are not a multiple of 8");
  EXPECT_EQ(Check(BytesField(1, BytesField(1, "\xff")), kPredictRequest),
            "model_spec.name: not valid UTF-8");
  EXPECT_EQ(Check(BytesField(3, "\xc3"), kPredictRequest), "output_filter: not valid UTF-8");
}

TEST(CheckMessageTest, APackedVarintMustEnd) {
  EXPECT_EQ(Check(BytesField(10, "\x80"), kTensorProto),
            "int64_val: a packed varint is cut off or longer than 10 bytes");
  EXPECT_EQ(Check(BytesField(10, std::string(11, '\x80') + '\0'), kTensorProto),
            "int64_val: a packed varint is cut off or longer than 10 bytes");
}

TEST(CheckMessageTest, MessagesNestOnlySoDeep) {
  const std::string message = Input("age", BytesField(2, ""));  // a tensor_shape: three deep
  EXPECT_EQ(Check(message, kPredictRequest, 3), "");
  EXPECT_NE(Check(message, kPredictRequest, 2), "");
}

TEST(CheckMessageTest, TheFirstBrokenByteIsTold) {
  const std::string message = VarintField(6, 1) + "\x0a\x05"s + "ab";
  Malformed malformed;
  ASSERT_FALSE(CheckMessage(Reader(Bytes(message)), kPredictRequest, 100, &malformed));
  EXPECT_EQ(malformed.path, "model_spec");
  EXPECT_GE(malformed.offset, 3u);
  const Status status = MalformedError("PredictRequest", malformed, message.size());
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message, "malformed PredictRequest: model_spec: " + malformed.reason +
                                " (byte " + std::to_string(malformed.offset) + " of 6)");
}

}  // namespace
}  // namespace colcast
