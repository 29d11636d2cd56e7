#include "server/http2/transport.h"

#include <algorithm>

namespace colcast::http2 {
namespace {

constexpr size_t kMinReadBytes = 16 << 10;
constexpr size_t kMaxOutputBytes = 64 << 10;

}  // namespace

Transport::Result Transport::Read(size_t most) {
  if (block_.use_count() == 1) block_used_ = 0;
  if (block_ == nullptr || kBlockBytes - block_used_ < kMinReadBytes) {
    block_.reset(new uint8_t[kBlockBytes]);
    block_used_ = 0;
  }
  uint8_t* const data = block_.get() + block_used_;
  const size_t room = std::min(most, kBlockBytes - block_used_);
  size_t size = room;
  const net::Socket::Result result = socket_->Read(data, &size);
  if (result == net::Socket::Result::kAgain) return Result::kNothing;
  if (result == net::Socket::Result::kClosed) return Result::kClosed;
  block_used_ += size;
  if (nghttp2_session_mem_recv(session_, data, size) < 0) return Result::kBroken;
  return size == room || socket_->is_tls() ? Result::kSome : Result::kAll;
}

Transport::Result Transport::Write() {
  while (FillOutput()) {
    size_t size = output_.size() - output_sent_;
    const net::Socket::Result result = socket_->Write(output_.data() + output_sent_, &size);
    if (result == net::Socket::Result::kAgain) return Result::kNothing;
    if (result == net::Socket::Result::kClosed) return Result::kClosed;
    output_sent_ += size;
  }
  return Result::kAll;
}

// Returns false if there is nothing to send.
bool Transport::FillOutput() {
  if (output_sent_ < output_.size()) return true;
  output_.clear();
  output_sent_ = 0;
  while (output_.size() < kMaxOutputBytes) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) break;
    output_.insert(output_.end(), data, data + size);
  }
  return !output_.empty();
}

}  // namespace colcast::http2
