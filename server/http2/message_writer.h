// Writes a gRPC message in steps: its prefix and its slices.
#ifndef COLCAST_SERVER_HTTP2_MESSAGE_WRITER_H_
#define COLCAST_SERVER_HTTP2_MESSAGE_WRITER_H_

#include <cstddef>
#include <cstdint>

#include "server/http2/message.h"
#include "server/http2/message_prefix.h"

namespace colcast::http2 {

class MessageWriter {
 public:
  // Replaces the previous message.
  void Begin(Message message);
  // Copies the next bytes, at most `size`, and returns their number.
  size_t Copy(uint8_t* out, size_t size);

  // Refer to the current message.
  bool has_message() const { return has_message_; }
  bool has_bytes_left() const { return has_message_ && sent_ < message_.size() + prefix_.size(); }
  void End() { has_message_ = false; }

 private:
  Message message_;
  MessagePrefix prefix_{};
  bool has_message_ = false;
  size_t sent_ = 0;   // bytes, prefix included
  size_t slice_ = 0;  // index of the next slice
  size_t of_slice_ = 0;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_MESSAGE_WRITER_H_
