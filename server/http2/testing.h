// For tests: messages of text, a client, and calls to wait for.
#ifndef COLCAST_SERVER_HTTP2_TESTING_H_
#define COLCAST_SERVER_HTTP2_TESTING_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/base/status.h"
#include "server/base/text.h"
#include "server/http2/grpc.h"
#include "server/http2/transport.h"

namespace colcast::http2 {

inline Message Of(std::string text) {
  const auto owner = std::make_shared<std::string>(std::move(text));
  Message message;
  message.Append(owner, reinterpret_cast<const uint8_t*>(owner->data()), owner->size());
  return message;
}

// One connection to a server on this machine. Reads only while a test waits for an answer.
class Client {
 public:
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClosed);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Client() {
    nghttp2_session_del(session_);
    close(socket_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

 private:
  friend class StartedCall;

  struct Stream {
    std::string unsent;  // of the request
    std::string answer;  // with its prefix
    Status status = Unavailable("no grpc-status");
    bool has_ended = false;
  };

  static Stream& StreamOf(void* client, int32_t number) {
    return static_cast<Client*>(client)->streams_[number];
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void* client) {
    Status& status = StreamOf(client, frame->hd.stream_id).status;
    const std::string text(View(value));
    if (View(name) == "grpc-status") status = {static_cast<StatusCode>(std::stoi(text)), ""};
    if (View(name) == "grpc-message") status.message = PercentDecode(text);
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size,
                    void* client) {
    StreamOf(client, stream).answer.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int OnStreamClosed(nghttp2_session*, int32_t stream, uint32_t error, void* client) {
    StreamOf(client, stream).has_ended = true;
    if (error == NGHTTP2_CANCEL) StreamOf(client, stream).status = {StatusCode::kCancelled, ""};
    return 0;
  }
  static ssize_t ReadRequest(nghttp2_session*, int32_t stream, uint8_t* out, size_t size,
                             uint32_t* flags, nghttp2_data_source*, void* client) {
    std::string& unsent = StreamOf(client, stream).unsent;
    const size_t copied = unsent.copy(reinterpret_cast<char*>(out), size);
    unsent.erase(0, copied);
    if (unsent.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(copied);
  }

  int32_t Start(const std::string& path, const std::string& text) {
    const nghttp2_nv headers[] = {
        Literal(":method", "POST"), Literal(":scheme", "http"),
        Named(":path", path),       Literal(":authority", "server"),
        Literal("te", "trailers"),  Literal("content-type", "application/grpc"),
        Literal("name", "ann")};
    nghttp2_data_provider provider{};
    provider.read_callback = ReadRequest;
    const int32_t stream =
        nghttp2_submit_request(session_, nullptr, headers, std::size(headers), &provider, nullptr);
    const MessagePrefix prefix = PrefixOf(text.size(), false);
    streams_[stream].unsent = std::string(prefix.begin(), prefix.end()) + text;
    Write();
    return stream;
  }
  void Write() {
    const uint8_t* data = nullptr;
    for (ssize_t size = 1; size > 0;) {
      size = nghttp2_session_mem_send(session_, &data);
      for (ssize_t sent = 0; sent < size;) {
        const ssize_t more = send(socket_, data + sent, size - sent, MSG_NOSIGNAL);
        if (more < 0) return;
        sent += more;
      }
    }
  }
  // Returns false if the connection has ended.
  bool Read() {
    std::array<uint8_t, 64 << 10> bytes;
    const ssize_t size = recv(socket_, bytes.data(), bytes.size(), 0);
    if (size <= 0 || nghttp2_session_mem_recv(session_, bytes.data(), size) < 0) return false;
    Write();
    return true;
  }

  const int socket_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Stream> streams_;
};

// A started call of a test.Service method. `client` must outlive it.
class StartedCall {
 public:
  StartedCall(Client* client, const std::string& method, const std::string& text = "hello")
      : client_(client), stream_(client->Start("/test.Service/" + method, text)) {}

  void Cancel() {
    nghttp2_submit_rst_stream(client_->session_, NGHTTP2_FLAG_NONE, stream_, NGHTTP2_CANCEL);
    client_->Write();
  }
  Status Wait() {
    while (!stream().has_ended) {
      if (!client_->Read()) return Unavailable("the connection has ended");
    }
    return stream().status;
  }
  std::string answer() { return stream().answer.substr(kMessagePrefixBytes); }

 private:
  Client::Stream& stream() { return client_->streams_[stream_]; }

  Client* const client_;
  const int32_t stream_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_TESTING_H_
