#include "server/wire/bytes.h"

#include <string>
#include <string_view>

#include "server/base/text.h"

namespace colcast {

Bytes::Bytes(const Slice* slices, size_t slice_count) {
  for (size_t i = 0; i < slice_count; ++i) size_ += slices[i].size;
  if (size_ == 0) return;
  while (slices->size == 0) ++slices;
  head_ = slices->data;
  head_size_ = slices->size;
  rest_ = slices + 1;
}

Bytes Bytes::SubAcross(size_t offset, size_t size) const {
  if (size == 0) return Bytes();
  if (offset < head_size_) return Bytes(head_ + offset, head_size_ - offset, size, rest_);
  offset -= head_size_;
  const Slice* slice = rest_;
  for (; offset >= slice->size; ++slice) offset -= slice->size;
  return Bytes(slice->data + offset, std::min(size, slice->size - offset), size, slice + 1);
}

void Bytes::CopyRest(uint8_t* out) const {
  size_t left = size_ - head_size_;
  for (const Slice* slice = rest_; left > 0; ++slice) {
    const size_t piece = std::min(left, slice->size);
    if (piece > 0) std::memcpy(out, slice->data, piece);
    out += piece;
    left -= piece;
  }
}

bool IsValidUtf8(const Bytes& text) {
  return text.contiguous() ? IsValidUtf8(text.view())
                           : IsValidUtf8(std::string_view(text.ToString()));
}

}  // namespace colcast
