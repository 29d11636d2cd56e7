// engine/fuzz/wire_fuzz.cc compares decoded requests with protobuf's and TensorFlow's.
#include "server/wire/predict_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Dim(int64_t size) { return BytesField(2, VarintField(1, size)); }
std::string Shape(const std::string& dims) { return BytesField(2, dims); }
std::string Input(const std::string& name, const std::string& tensor) {
  return BytesField(2, BytesField(1, name) + BytesField(2, tensor));
}

// Decodes `message` in every slicing, always into the same request, and checks each result.
template <typename Check>
void Decode(const std::string& message, Check&& check) {
  DecodedRequest request;
  ForEachSlicing(message, [&](const Bytes& bytes) {
    const Status status = DecodePredictRequest(bytes, &request);
    ASSERT_TRUE(status.ok()) << status.message;
    check(request);
  });
}

// Expects every slicing of `message` to be refused with exactly this message.
void ExpectRefused(const std::string& message, const std::string& error) {
  DecodedRequest request;
  ForEachSlicing(message, [&](const Bytes& bytes) {
    const Status status = DecodePredictRequest(bytes, &request);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message, "malformed PredictRequest: " + error);
  });
}

TEST(DecodePredictRequestTest, FieldsForOtherServersAreSkipped) {
  Decode(BytesField(5, "\xff") + BytesField(6, "\xff") + BytesField(7, "\xff") +
             Input("x", BytesField(14, "\xff") + BytesField(15, "\xff")),
         [](const DecodedRequest& request) { EXPECT_EQ(request.columns().size(), 1u); });
}

TEST(DecodePredictRequestTest, ErrorsNameInputFieldAndByte) {
  const std::string message = Input("age", VarintField(1, 9) + BytesField(10, Varints({1, 2, 3})));
  ExpectRefused(message.substr(0, message.size() - 1),
                "length goes past the end (field 2, byte 2 of 15)");
  ExpectRefused(Input("age", BytesField(10, "\x80")),
                "input \"age\": a packed varint is cut off or longer than 10 bytes "
                "(field 2.2.10, byte 11 of 12)");
  ExpectRefused(Input("age", BytesField(5, "123")),
                "input \"age\": the packed field's 3 bytes are not a multiple of 4 "
                "(field 2.2.5, byte 11 of 14)");
  ExpectRefused(Input("age", Shape(BytesField(2, "\x08"))),
                "input \"age\": varint goes past the end (field 2.2.2.2.1, byte 14 of 14)");
}

TEST(DecodePredictRequestTest, NamesMustBeUtf8) {
  ExpectRefused(Input("\xff", ""), "not valid UTF-8 (field 2.1, byte 4 of 7)");
  ExpectRefused(BytesField(3, "\xff"), "not valid UTF-8 (field 3, byte 2 of 3)");
  ExpectRefused(BytesField(1, BytesField(1, "\xff")), "not valid UTF-8 (field 1.1, byte 4 of 5)");
  ExpectRefused(Input("a", Shape(BytesField(2, BytesField(2, "\xff")))),
                "input \"a\": not valid UTF-8 (field 2.2.2.2.2, byte 13 of 14)");
}

TEST(PredictRequestTest, RefusesMoreColumnsThanAllowed) {
  const std::string message = Input("a", "") + Input("b", "") + Input("a", "") + Input("c", "");
  DecodedRequest request;
  EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request, 3).ok());
  const Status status = DecodePredictRequest(Bytes(message), &request, 2);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("more than 2 inputs"));
}

TEST(DecodePredictRequestTest, RequestsBeyondLimitsAreRefusedBeforeTheyTakeMemory) {
  constexpr int kMany = 1'000'000;
  std::string filter, tensors = BytesField(1, "x"), dims;
  for (int i = 0; i < kMany; ++i) {
    filter += BytesField(3, "");
    tensors += BytesField(2, VarintField(7, 1));
    dims += BytesField(2, "");
  }
  DecodedRequest request;
  Status status = DecodePredictRequest(Bytes(filter), &request, 100);
  EXPECT_THAT(status.message, HasSubstr("more than 100 outputs in its filter"));
  const std::string merged = BytesField(2, tensors);
  status = DecodePredictRequest(Bytes(merged), &request, 100);
  EXPECT_THAT(status.message, HasSubstr("more than 100 tensors that are merged into others"));
  const std::string deep = BytesField(2, BytesField(1, "x") + BytesField(2, BytesField(2, dims)));
  ASSERT_TRUE(DecodePredictRequest(Bytes(deep), &request, 100).ok());
  EXPECT_EQ(request.columns()[0].dims.size(), 255u);
}

TEST(PredictRequestTest, ColumnsAreAddedAndFoundByName) {
  DecodedRequest request;
  for (int i = 0; i < 2; ++i) {
    request.Clear();
    EXPECT_EQ(request.columns().size(), 0u);
    EXPECT_EQ(request.Find("a"), nullptr);
    Column* const a = request.AddColumn("a");
    EXPECT_EQ(a->dtype, DT_INVALID);
    EXPECT_THAT(a->dims, IsEmpty());
    EXPECT_EQ(a->values.count, 0);
    a->dtype = DT_STRING;
    a->dims = {2};
    a->values.AddString(request.Keep("x"));
    a->values.AddString(request.Keep("y"));
    request.AddColumn("b");
    EXPECT_EQ(request.columns().size(), 2u);
    EXPECT_EQ(request.Find("a"), &request.columns()[0]);
    EXPECT_EQ(request.Find("b"), &request.columns()[1]);
    EXPECT_EQ(request.columns()[0].values.count, 2);
  }
}

TEST(PredictRequestTest, HoldsManyColumns) {
  std::string message;
  for (int i = 0; i < 10000; ++i) message += Input("f" + std::to_string(i), VarintField(1, 9));
  DecodedRequest request;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    EXPECT_EQ(request.columns().size(), 10000u);
    for (int i = 0; i < 10000; ++i) {
      EXPECT_EQ(request.Find("f" + std::to_string(i)), &request.columns()[i]);
    }
    EXPECT_EQ(request.Find("f"), nullptr);
  }
}

// A request object keeps the names of its previous message when it reads the next one.
class NextMessageTest : public ::testing::Test {
 protected:
  // Expects request_ to read the message as a new object would.
  void ExpectReadAsByAFreshOne(const std::string& message) {
    DecodedRequest fresh;
    const Status expected = DecodePredictRequest(Bytes(message), &fresh);
    const Status status = DecodePredictRequest(Bytes(message), &request_);
    ASSERT_EQ(status.code, expected.code);
    EXPECT_EQ(status.message, expected.message);
    if (!expected.ok()) return;
    EXPECT_EQ(request_.model_spec.name, fresh.model_spec.name);
    EXPECT_EQ(request_.model_spec.version, fresh.model_spec.version);
    EXPECT_EQ(request_.output_filter, fresh.output_filter);
    ASSERT_EQ(request_.columns().size(), fresh.columns().size());
    for (size_t i = 0; i < fresh.columns().size(); ++i) {
      ExpectEqual(request_.columns()[i], fresh.columns()[i]);
      EXPECT_EQ(request_.Find(fresh.columns()[i].name), &request_.columns()[i]);
    }
    EXPECT_EQ(request_.Find("not there"), nullptr);
  }

  static void ExpectEqual(const Column& column, const Column& expected) {
    EXPECT_EQ(column.name, expected.name);
    EXPECT_EQ(column.dtype, expected.dtype);
    EXPECT_EQ(column.unknown_rank, expected.unknown_rank);
    EXPECT_EQ(column.dims, expected.dims);
    const ColumnValues& values = column.values;
    EXPECT_EQ(values.count, expected.values.count);
    EXPECT_EQ(values.packed, expected.values.packed);
    EXPECT_EQ(values.tensor_content.ToString(), expected.values.tensor_content.ToString());
    EXPECT_EQ(values.payload.ToString(), expected.values.payload.ToString());
    ASSERT_EQ(values.messages.size(), expected.values.messages.size());
    for (size_t i = 0; i < values.messages.size(); ++i) {
      EXPECT_EQ(values.messages[i].ToString(), expected.values.messages[i].ToString());
    }
  }

  static std::string Tensor(DataType dtype, int64_t rows, const std::string& values) {
    return VarintField(1, dtype) + Shape(Dim(rows)) + values;
  }
  const std::string int_ = Tensor(DT_INT64, 2, BytesField(10, Varints({1, 300})));
  const std::string float_ = Tensor(DT_FLOAT, 1, BytesField(5, Raw(std::vector<float>{2})));
  const std::string content_ = Tensor(DT_FLOAT, 1, BytesField(4, Raw(std::vector<float>{3})));
  const std::string text_ = Tensor(DT_STRING, 2, BytesField(8, "x") + BytesField(8, ""));
  const std::string spec_ =
      BytesField(1, BytesField(1, "m") + BytesField(2, VarintField(1, 3))) + BytesField(3, "o");
  const std::string usual_ =
      Input("a", int_) + Input("b", float_) + Input("c", content_) + Input("d", text_);

  DecodedRequest request_;
};

TEST_F(NextMessageTest, TheNextMessageIsReadAsByANewObjectWhateverItsNames) {
  for (const std::string& message :
       {usual_, usual_, Input("a", int_), usual_, spec_ + usual_ + Input("e", int_),
        Input("b", float_) + usual_, Input("a", int_) + Input("x", text_) + Input("b", float_),
        std::string(), usual_, usual_ + Input("a", text_), Input("a", float_) + Input("a", int_),
        usual_, Input("d", int_) + Input("d", text_) + Input("a", int_), usual_}) {
    ExpectReadAsByAFreshOne(message);
  }
}

TEST_F(NextMessageTest, TheNextMessageIsReadAsByANewObjectWhateverByteChanges) {
  for (size_t at = 0; at < usual_.size(); ++at) {
    for (const int change : {1, 2, 8, 64, 128}) {
      ExpectReadAsByAFreshOne(usual_);
      std::string message = usual_;
      message[at] = static_cast<char>(message[at] ^ change);
      ExpectReadAsByAFreshOne(message);
      ExpectReadAsByAFreshOne(message.substr(0, at));
    }
  }
}

}  // namespace
}  // namespace colcast
