// Splits the bytes of a stream into gRPC messages: a flag, four bytes of length, the message.
#ifndef COLCAST_SERVER_HTTP2_MESSAGE_READER_H_
#define COLCAST_SERVER_HTTP2_MESSAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/base/status.h"
#include "server/http2/message.h"
#include "server/http2/message_prefix.h"

namespace colcast::http2 {

// The messages of one stream, as they arrive.
class MessageReader {
 public:
  explicit MessageReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  // The encoding of messages with the flag set: the stream's grpc-encoding.
  void set_encoding(std::string encoding) { encoding_ = std::move(encoding); }

  // Reads `size` bytes from `data`, which `owner` keeps alive: long runs are shared, others copied.
  // Stops at the end of a message, and sets *size to the number of bytes read. RESOURCE_EXHAUSTED
  // for a message longer than `max_bytes`, before any of it is kept.
  Status Read(const std::shared_ptr<const void>& owner, const uint8_t* data, size_t* size);

  // Takes the complete message, once.
  bool has_message() const { return prefix_bytes_ == kMessagePrefixBytes && left_ == 0; }
  Message Take();
  // Whether a message has begun but is incomplete.
  bool is_within_message() const { return prefix_bytes_ > 0 && !has_message(); }

 private:
  Status BeginMessage();
  void Keep(const std::shared_ptr<const void>& owner, const uint8_t* data, size_t size);
  void Copy(const uint8_t* data, size_t size);

  const size_t max_bytes_;
  std::string encoding_;
  MessagePrefix prefix_{};
  size_t prefix_bytes_ = 0;
  size_t left_ = 0;
  Message message_;
  uint8_t* room_ = nullptr;  // free space behind the last slice, in its own block
  size_t room_bytes_ = 0;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_MESSAGE_READER_H_
