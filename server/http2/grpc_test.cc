#include "server/http2/grpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/base/text.h"
#include "server/wire/inflater_testing.h"

namespace colcast::http2 {
namespace {

using testing::HasSubstr;

constexpr size_t kMaxBytes = 1 << 20;

std::string Framed(const std::string& message, char flag = 0) {
  const MessagePrefix prefix = PrefixOf(message.size(), false);
  std::string framed(prefix.begin(), prefix.end());
  framed[0] = flag;
  return framed + message;
}

// Passes the bytes in runs of `step`. Appends the messages as text, up to the first error.
Status ReadAll(MessageReader* reader, const std::string& bytes, size_t step,
               std::vector<std::string>* messages) {
  const auto owner = std::make_shared<std::string>(bytes);
  const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
  for (size_t at = 0; at < bytes.size();) {
    size_t size = std::min(step, bytes.size() - at);
    if (Status status = reader->Read(owner, data + at, &size); !status.ok()) return status;
    at += size;
    if (reader->has_message()) messages->push_back(reader->Take().bytes().ToString());
  }
  return OkStatus();
}

std::string Text(size_t size) {
  std::string text(size, 'x');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST(MessageReaderTest, MessagesAreReadFromAnySlices) {
  const std::vector<std::string> sent = {"", "a", Text(1023), Text(20'000), "", Text(200'000)};
  std::string bytes;
  for (const std::string& message : sent) bytes += Framed(message);
  for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, size_t{16384}, bytes.size()}) {
    MessageReader reader(kMaxBytes);
    std::vector<std::string> messages;
    ASSERT_TRUE(ReadAll(&reader, bytes, step, &messages).ok()) << step;
    EXPECT_EQ(messages, sent) << step;
  }
}

TEST(MessageReaderTest, LargeRunsAreShared) {
  const auto owner = std::make_shared<std::string>(Framed(Text(100'000)));
  const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
  MessageReader reader(kMaxBytes);
  size_t size = owner->size();
  ASSERT_TRUE(reader.Read(owner, data, &size).ok());
  const Message message = reader.Take();
  ASSERT_EQ(message.slices().size(), 1);
  EXPECT_EQ(message.slices()[0].data, data + kMessagePrefixBytes);
  EXPECT_EQ(owner.use_count(), 2);
}

TEST(MessageReaderTest, SmallRunsAreCopiedIntoFewSlices) {
  MessageReader reader(kMaxBytes);
  const auto owner = std::make_shared<std::string>(Framed(Text(5000)));
  const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
  for (size_t at = 0; at < owner->size(); ++at) {
    size_t one = 1;
    ASSERT_TRUE(reader.Read(owner, data + at, &one).ok());
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_LE(reader.Take().slices().size(), 4);
}

TEST(MessageReaderTest, ATooLongMessageIsRefusedOnceItsPrefixIsRead) {
  MessageReader reader(100);
  std::vector<std::string> messages;
  EXPECT_TRUE(ReadAll(&reader, Framed(Text(100)), 1, &messages).ok());
  const Status status = ReadAll(&reader, Framed(Text(101)).substr(0, 5), 1, &messages);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("101 bytes is longer than 100"));
}

TEST(MessageReaderTest, EachMessageHasItsOwnCompression) {
  for (const auto& [encoding, compression] :
       {std::pair("gzip", Compression::kGzip), {"deflate", Compression::kDeflate}}) {
    MessageReader reader(kMaxBytes);
    reader.set_encoding(encoding);
    const auto owner = std::make_shared<std::string>(Framed("zip", 1) + Framed("plain", 0));
    const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
    size_t size = owner->size();
    ASSERT_TRUE(reader.Read(owner, data, &size).ok());
    EXPECT_EQ(size, 8);
    EXPECT_EQ(reader.Take().compression(), compression);
    size_t rest = owner->size() - size;
    ASSERT_TRUE(reader.Read(owner, data + size, &rest).ok());
    EXPECT_EQ(reader.Take().compression(), Compression::kNone);
  }
}

TEST(MessageReaderTest, AnUnknownFlagOrEncodingIsAnError) {
  std::vector<std::string> messages;
  MessageReader unnamed(kMaxBytes), unknown(kMaxBytes), two(kMaxBytes);
  EXPECT_EQ(ReadAll(&unnamed, Framed("a", 1), 6, &messages).code, StatusCode::kInternal);
  unknown.set_encoding("br");
  EXPECT_EQ(ReadAll(&unknown, Framed("a", 1), 6, &messages).code, StatusCode::kUnimplemented);
  EXPECT_EQ(ReadAll(&two, Framed("a", 2), 6, &messages).code, StatusCode::kInternal);
}

std::string Gzip(const std::string& text) { return Deflated(text, 15 + 16); }

// Compresses `bytes` into a message with slices of `slice_bytes`.
Message Compressed(const std::string& bytes, Compression compression,
                   size_t slice_bytes = 1 << 20) {
  const auto owner = std::make_shared<std::string>(bytes);
  Message message;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    const size_t size = std::min(slice_bytes, bytes.size() - at);
    message.Append(owner, reinterpret_cast<const uint8_t*>(owner->data()) + at, size);
  }
  message.set_compression(compression);
  return message;
}

std::string LongText() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007);
  return text;
}

TEST(InflateTest, AnUncompressedMessageIsUnchanged) {
  Message message = Compressed("hello", Compression::kNone);
  EXPECT_TRUE(Inflate(/*max_bytes=*/0, &message).ok());
  EXPECT_EQ(message.bytes().ToString(), "hello");
}

TEST(InflateTest, ACompressedMessageIsInflatedUpToTheLimit) {
  for (const std::string& text : {std::string("h"), LongText()}) {
    for (const size_t slice_bytes : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      for (const auto compression : {Compression::kGzip, Compression::kDeflate}) {
        const bool gzip = compression == Compression::kGzip;
        Message message =
            Compressed(gzip ? Gzip(text) : Deflated(text, 15), compression, slice_bytes);
        const Status refused = Inflate(text.size() - 1, &message);
        EXPECT_EQ(refused.code, StatusCode::kResourceExhausted);
        EXPECT_THAT(refused.message, HasSubstr("to more than " + std::to_string(text.size() - 1)));
        EXPECT_EQ(message.compression(), compression);
        EXPECT_TRUE(Inflate(text.size(), &message).ok());
        EXPECT_EQ(message.compression(), Compression::kNone);
        EXPECT_TRUE(message.bytes().ToString() == text);
      }
    }
  }
}

TEST(InflateTest, InvalidCompressedBytesAreAnError) {
  const std::string cut = Gzip(LongText()).substr(0, 5000);
  for (const std::string& bytes : {std::string(), std::string("no gzip"), cut, Gzip("hello") + "x",
                                   Gzip("hello") + Gzip("hello")}) {
    Message message = Compressed(bytes, Compression::kGzip);
    const Status status = Inflate(1 << 30, &message);
    EXPECT_EQ(status.code, StatusCode::kInternal);
    EXPECT_THAT(status.message, HasSubstr("not valid gzip"));
  }
}

TEST(InflateTest, AFailedAllocationIsReturned) {
  Message message = Compressed(Gzip(std::string(8 << 20, 'x')), Compression::kGzip);
  size_t made = 0, most = 0;
  const Status status = Inflate(1 << 30, &message, [&](size_t bytes, auto* block) {
    most = std::max(most, bytes);
    if (made + bytes > 3 << 20) return ResourceExhausted("no room");
    made += bytes;
    return MakePlainBlock(bytes, block);
  });
  EXPECT_EQ(status.message, "no room");
  EXPECT_LE(most, (size_t{1} << 20) + 1);
  EXPECT_EQ(message.compression(), Compression::kGzip);
}

using std::chrono::nanoseconds;

TEST(ParseTimeoutTest, ReadsANumberAndAUnit) {
  EXPECT_EQ(ParseTimeout("1H"), std::chrono::hours(1));
  EXPECT_EQ(ParseTimeout("2M"), std::chrono::minutes(2));
  EXPECT_EQ(ParseTimeout("3S"), std::chrono::seconds(3));
  EXPECT_EQ(ParseTimeout("100m"), std::chrono::milliseconds(100));
  EXPECT_EQ(ParseTimeout("99999999u"), std::chrono::microseconds(99'999'999));
  EXPECT_EQ(ParseTimeout("0n"), nanoseconds(0));
}

TEST(ParseTimeoutTest, HugeTimeoutsAreReducedToAYear) {
  EXPECT_EQ(ParseTimeout("99999999H"), std::chrono::hours(24 * 365));
}

TEST(ParseTimeoutTest, InvalidTimeoutsAreRefused) {
  for (const char* text : {"", "m", "1", "1s", "-1m", " 1m", "1.5S", "123456789m", "1mm", "m1"}) {
    EXPECT_FALSE(ParseTimeout(text)) << text;
  }
}

TEST(IsGrpcTest, AcceptsOnlyGrpcTypes) {
  for (const char* type : {"application/grpc", "application/grpc+proto", "application/grpc;x=y"}) {
    EXPECT_TRUE(IsGrpc(type)) << type;
  }
  for (const char* type : {"application/grpcx", "application/grpc-web", "application/json", ""}) {
    EXPECT_FALSE(IsGrpc(type)) << type;
  }
}

TEST(PercentEncodeTest, EscapesAllButPrintableAscii) {
  EXPECT_EQ(PercentEncode(R"(input "a b" ~ 3!)"), R"(input "a b" ~ 3!)");
  EXPECT_EQ(PercentEncode("100%\n\x7f"), "100%25%0A%7F");
  EXPECT_EQ(PercentEncode("\xc3\xa9"), "%C3%A9");
  EXPECT_EQ(PercentEncode(""), "");
}

TEST(PercentDecodeTest, EncodedTextDecodesToItself) {
  for (const char* text : {"", "100%", "%", "%%41", "a b\n", "\xc3\xa9"}) {
    EXPECT_EQ(PercentDecode(PercentEncode(text)), text);
  }
}

}  // namespace
}  // namespace colcast::http2
