#include "server/wire/inflater.h"

#include <new>

namespace colcast {
namespace {

// zlib selects the format by a number added to the window bits.
int FormOf(Inflater::Format format) {
  switch (format) {
    case Inflater::Format::kGzip:
      return 16;
    case Inflater::Format::kZlib:
      return 0;
    case Inflater::Format::kGzipBody:
      return 32;  // detects the format from the first bytes
  }
  return 0;
}

}  // namespace

Inflater::Inflater(Span<Slice> compressed, Format format, size_t max_bytes)
    : compressed_(compressed), format_(format), max_bytes_(max_bytes) {
  if (inflateInit2(&stream_, MAX_WBITS + FormOf(format)) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() { inflateEnd(&stream_); }

void Inflater::FeedNextSlice() {
  while (stream_.avail_in == 0 && next_slice_ < compressed_.size()) {
    const Slice& slice = compressed_[next_slice_++];
    stream_.next_in = const_cast<Bytef*>(slice.data);
    stream_.avail_in = static_cast<uInt>(slice.size);
  }
}

Status Inflater::Read(void* out, size_t* size) {
  stream_.next_out = static_cast<Bytef*>(out);
  stream_.avail_out = static_cast<uInt>(*size);
  while (!ended_ && stream_.avail_out > 0) {
    FeedNextSlice();
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      if (Status status = EndOfStream(); !status.ok()) return status;
    } else if (code != Z_OK) {
      return Damaged(stream_.msg != nullptr ? stream_.msg : "it ends too early");
    }
  }
  *size -= stream_.avail_out;
  inflated_ += *size;
  if (inflated_ <= max_bytes_) return OkStatus();
  return ResourceExhausted("the compressed ", CompressedBytes(), " bytes inflate to more than ",
                           max_bytes_, ", the limit of a request");
}

Status Inflater::EndOfStream() {
  FeedNextSlice();
  ended_ = stream_.avail_in == 0;
  if (ended_) return OkStatus();
  if (format_ != Format::kGzipBody) return Damaged("bytes follow its end");
  inflateReset(&stream_);
  return OkStatus();
}

Status Inflater::Damaged(const char* why) const {
  return InvalidArgument("the compressed ", CompressedBytes(),
                         " bytes are not valid gzip or zlib: ", why);
}

}  // namespace colcast
