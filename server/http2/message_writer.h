// A message of gRPC's on its way out: its prefix and its slices, piece by piece.
#ifndef COLCAST_SERVER_HTTP2_MESSAGE_WRITER_H_
#define COLCAST_SERVER_HTTP2_MESSAGE_WRITER_H_

#include <cstddef>
#include <cstdint>

#include "server/http2/message.h"
#include "server/http2/message_prefix.h"

namespace colcast::http2 {

class MessageWriter {
 public:
  // In place of the one before.
  void Begin(Message message);
  // Copies the next bytes, at most `size`, and returns how many.
  size_t Copy(uint8_t* out, size_t size);

  // Of the message that was begun last.
  bool has_message() const { return has_message_; }
  bool has_bytes_left() const { return has_message_ && sent_ < message_.size() + prefix_.size(); }
  void End() { has_message_ = false; }

 private:
  Message message_;
  MessagePrefix prefix_{};
  bool has_message_ = false;
  size_t sent_ = 0;   // with the prefix
  size_t slice_ = 0;  // that is next
  size_t of_slice_ = 0;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_MESSAGE_WRITER_H_
