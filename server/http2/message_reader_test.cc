#include "server/http2/message_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

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

TEST(MessageReaderTest, MessagesComeAsTheyWereSentHoweverTheyAreCut) {
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

TEST(MessageReaderTest, LargeRunsStayWhereTheyAre) {
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

TEST(MessageReaderTest, TooLongAMessageIsRefusedByItsPrefix) {
  MessageReader reader(100);
  std::vector<std::string> messages;
  EXPECT_TRUE(ReadAll(&reader, Framed(Text(100)), 1, &messages).ok());
  const Status status = ReadAll(&reader, Framed(Text(101)).substr(0, 5), 1, &messages);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("101 bytes is longer than 100"));
}

TEST(MessageReaderTest, AMessageSaysHowItIsCompressed) {
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

TEST(MessageReaderTest, AFlagWithoutMeaningIsAnError) {
  std::vector<std::string> messages;
  MessageReader unnamed(kMaxBytes), unknown(kMaxBytes), two(kMaxBytes);
  EXPECT_EQ(ReadAll(&unnamed, Framed("a", 1), 6, &messages).code, StatusCode::kInternal);
  unknown.set_encoding("br");
  EXPECT_EQ(ReadAll(&unknown, Framed("a", 1), 6, &messages).code, StatusCode::kUnimplemented);
  EXPECT_EQ(ReadAll(&two, Framed("a", 2), 6, &messages).code, StatusCode::kInternal);
}

}  // namespace
}  // namespace colcast::http2
