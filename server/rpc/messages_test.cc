#include "server/rpc/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/http2/testing.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::rpc {
namespace {

using http2::Of;
using tensorflow::serving::GetModelStatusRequest;
using testing::HasSubstr;

TEST(MessagesTest, MessagesAreReadAsWritten) {
  GetModelStatusRequest written, read;
  written.mutable_model_spec()->set_name("m");
  Message bytes;
  ASSERT_TRUE(WriteMessage(written, &bytes).ok());
  ASSERT_TRUE(ReadMessage(bytes, &read).ok());
  EXPECT_EQ(read.SerializeAsString(), written.SerializeAsString());
}

TEST(MessagesTest, ErrorsNameTheMalformedMessage) {
  GetModelStatusRequest request;
  const Status status = ReadMessage(Of("\xff\xff"), &request);
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message, "malformed GetModelStatusRequest: protobuf cannot parse its 2 bytes");
}

TEST(MessagesTest, TooLargeMessagesAreRefused) {
  GetModelStatusRequest request;
  const Status status = ReadMessage(Of(std::string(kMaxMessageBytes + 1, 'x')), &request);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("4194305 bytes; at most 4194304"));
}

TEST(FromProtoTest, ASpecHasAVersionALabelOrNeither) {
  tensorflow::serving::ModelSpec proto;
  proto.set_name("m");
  proto.set_signature_name("s");
  ModelSpec spec = FromProto(proto);
  EXPECT_EQ(spec.name, "m");
  EXPECT_EQ(spec.signature_name, "s");
  EXPECT_FALSE(spec.version || spec.version_label);
  proto.mutable_version()->set_value(0);
  EXPECT_EQ(FromProto(proto).version, 0);
  proto.set_version_label("");
  spec = FromProto(proto);
  EXPECT_FALSE(spec.version);
  EXPECT_EQ(spec.version_label, "");
}

}  // namespace
}  // namespace colcast::rpc
