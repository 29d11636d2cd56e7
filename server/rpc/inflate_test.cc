#include "server/rpc/inflate.h"

#include <gmock/gmock.h>
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

namespace colcast::rpc {
namespace {

using testing::HasSubstr;

std::string Deflated(const std::string& text, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Gzip(const std::string& text) { return Deflated(text, 15 + 16); }

// As gRPC hands over what came compressed, in slices of so many bytes.
grpc::ByteBuffer Message(const std::string& bytes, grpc_compression_algorithm algorithm,
                         size_t slice_bytes = 1 << 20) {
  std::vector<grpc_slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    const size_t size = std::min(slice_bytes, bytes.size() - at);
    slices.push_back(grpc_slice_from_copied_buffer(bytes.data() + at, size));
  }
  grpc::ByteBuffer message;
  // The two have the same representation, says the header.
  *reinterpret_cast<grpc_byte_buffer**>(&message) =
      grpc_raw_compressed_byte_buffer_create(slices.data(), slices.size(), algorithm);
  for (const grpc_slice& slice : slices) grpc_slice_unref(slice);
  return message;
}

std::string TextOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

std::string LongText() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007);
  return text;
}

TEST(InflateTest, WhatCameAsItIsStays) {
  const grpc::Slice slice("hello");
  grpc::ByteBuffer message(&slice, 1);
  EXPECT_EQ(CompressionOf(message), GRPC_COMPRESS_NONE);
  EXPECT_TRUE(Inflate(/*max_bytes=*/0, &message).ok());
  EXPECT_EQ(TextOf(message), "hello");
  EXPECT_EQ(CompressionOf(grpc::ByteBuffer()), GRPC_COMPRESS_NONE);
}

TEST(InflateTest, WhatCameCompressedIsReadUpToTheLimit) {
  for (const std::string& text : {std::string("h"), LongText()}) {
    for (const size_t slice_bytes : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      for (const bool gzip : {true, false}) {
        const auto algorithm = gzip ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_DEFLATE;
        grpc::ByteBuffer message =
            Message(gzip ? Gzip(text) : Deflated(text, 15), algorithm, slice_bytes);
        const Status refused = Inflate(text.size() - 1, &message);
        EXPECT_EQ(refused.code, StatusCode::kResourceExhausted);
        EXPECT_THAT(refused.message, HasSubstr(" more than " + std::to_string(text.size() - 1)));
        EXPECT_EQ(CompressionOf(message), algorithm);
        EXPECT_TRUE(Inflate(text.size(), &message).ok());
        EXPECT_EQ(CompressionOf(message), GRPC_COMPRESS_NONE);
        EXPECT_TRUE(TextOf(message) == text);
      }
    }
  }
}

TEST(InflateTest, WhatDoesNotInflateIsAnError) {
  const std::string cut = Gzip(LongText()).substr(0, 5000);
  for (const std::string& bytes : {std::string(), std::string("no gzip"), cut}) {
    grpc::ByteBuffer message = Message(bytes, GRPC_COMPRESS_GZIP);
    const Status status = Inflate(1 << 30, &message);
    EXPECT_EQ(status.code, StatusCode::kInternal);
    EXPECT_THAT(status.message, HasSubstr("does not inflate"));
  }
}

}  // namespace
}  // namespace colcast::rpc
