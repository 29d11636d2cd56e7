#include "server/http2/message_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace colcast::http2 {

void MessageWriter::Begin(Message message) {
  message_ = std::move(message);
  prefix_ = PrefixOf(message_.size(), message_.compression() != Compression::kNone);
  has_message_ = true;
  sent_ = slice_ = of_slice_ = 0;
}

size_t MessageWriter::Copy(uint8_t* out, size_t size) {
  if (!has_bytes_left()) return 0;
  size_t copied = 0;
  if (sent_ < prefix_.size()) {
    copied = std::min(size, prefix_.size() - sent_);
    std::memcpy(out, prefix_.data() + sent_, copied);
  }
  while (copied < size && slice_ < message_.slices().size()) {
    const Slice& slice = message_.slices()[slice_];
    const size_t piece = std::min(size - copied, slice.size - of_slice_);
    if (piece > 0) std::memcpy(out + copied, slice.data + of_slice_, piece);
    copied += piece;
    of_slice_ += piece;
    if (of_slice_ == slice.size) {
      ++slice_;
      of_slice_ = 0;
    }
  }
  sent_ += copied;
  return copied;
}

}  // namespace colcast::http2
