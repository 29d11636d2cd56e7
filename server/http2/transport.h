// An HTTP/2 session on a socket. Passes received bytes to nghttp2 and sends nghttp2's output.
#ifndef COLCAST_SERVER_HTTP2_TRANSPORT_H_
#define COLCAST_SERVER_HTTP2_TRANSPORT_H_

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "server/net/socket.h"

namespace colcast::http2 {

// The flow-control windows of one stream and of the connection.
inline constexpr int kStreamWindow = 1 << 20;
inline constexpr int kConnectionWindow = 16 << 20;

class Transport {
 public:
  static constexpr size_t kBlockBytes = 64 << 10;

  explicit Transport(std::unique_ptr<net::Socket> socket) : socket_(std::move(socket)) {}
  ~Transport() { nghttp2_session_del(session_); }
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  net::Socket& socket() { return *socket_; }
  // Created by the caller, and deleted by this object.
  nghttp2_session*& session() { return session_; }

  enum class Result {
    kNothing,  // no data had arrived, or none could be written
    kAll,      // all data that had arrived was read, or all pending data written
    kSome,     // some data was read, and more may be available
    kClosed,   // the socket is closed
    kBroken,   // the received bytes are not HTTP/2
  };
  // Reads once, at most `most` bytes. Callbacks that receive data find it in block().
  Result Read(size_t most = kBlockBytes) {
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
  const std::shared_ptr<uint8_t[]>& block() const { return block_; }
  // Writes all pending output. Returns kNothing if the socket accepts no more now.
  Result Write() {
    while (FillOutput()) {
      size_t size = output_.size() - output_sent_;
      const net::Socket::Result result = socket_->Write(output_.data() + output_sent_, &size);
      if (result == net::Socket::Result::kAgain) return Result::kNothing;
      if (result == net::Socket::Result::kClosed) return Result::kClosed;
      output_sent_ += size;
    }
    return Result::kAll;
  }
  // Whether neither side has anything left to send.
  bool is_over() const {
    return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
  }

 private:
  static constexpr size_t kMinReadBytes = 16 << 10;
  static constexpr size_t kMaxOutputBytes = 64 << 10;

  // Returns false if there is nothing to send.
  bool FillOutput() {
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

  const std::unique_ptr<net::Socket> socket_;
  nghttp2_session* session_ = nullptr;
  std::shared_ptr<uint8_t[]> block_;
  size_t block_used_ = 0;
  std::vector<uint8_t> output_;
  size_t output_sent_ = 0;
};

// A header in nghttp2's format. Both strings are copied when the headers are submitted.
inline nghttp2_nv Field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

// Makes a header whose name is a string literal, which need not be copied.
template <size_t kName>
nghttp2_nv Named(const char (&name)[kName], std::string_view value) {
  nghttp2_nv field = Field({name, kName - 1}, value);
  field.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
  return field;
}

// Makes a header whose name and value are string literals.
template <size_t kName, size_t kValue>
nghttp2_nv Literal(const char (&name)[kName], const char (&value)[kValue]) {
  nghttp2_nv field = Field({name, kName - 1}, {value, kValue - 1});
  field.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  return field;
}

inline std::string_view View(nghttp2_rcbuf* buffer) {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_TRANSPORT_H_
