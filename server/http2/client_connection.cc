#include "server/http2/client_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "server/net/connection.h"

namespace colcast::http2 {
namespace {

int ErrorOf(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

struct ClientConnection::Callbacks {
  static ClientConnection& Of(void* user_data) {
    return *static_cast<ClientConnection*>(user_data);
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void* user_data) {
    ClientCall* const call = Of(user_data).Find(frame->hd.stream_id);
    if (call != nullptr) call->AddHeader(View(name), View(value));
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size,
                    void* user_data) {
    return Of(user_data).Data(stream, data, size);
  }
  static int OnFrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    if (frame->hd.type == NGHTTP2_GOAWAY) Of(user_data).going_away_ = true;
    return 0;
  }
  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    ClientCall* const call = Of(user_data).Find(frame->hd.stream_id);
    if (call != nullptr) call->is_sent = true;
    return 0;
  }
  static int OnStreamClosed(nghttp2_session*, int32_t stream, uint32_t error, void* user_data) {
    return Of(user_data).StreamClosed(stream, error);
  }
  static ssize_t ReadRequest(nghttp2_session*, int32_t stream, uint8_t* out, size_t size,
                             uint32_t* flags, nghttp2_data_source*, void* user_data) {
    ClientCall* const call = Of(user_data).Find(stream);
    if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const size_t copied = call->writer.Copy(out, size);
    if (!call->writer.has_bytes_left()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(copied);
  }

  static const nghttp2_session_callbacks* All() {
    static const nghttp2_session_callbacks* const all = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_header_callback2(callbacks, OnHeader);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrameReceived);
      nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClosed);
      return callbacks;
    }();
    return all;
  }
};

std::shared_ptr<ClientConnection> ClientConnection::Start(int socket, std::string authority,
                                                          net::Poller* poller, Events events,
                                                          SSL_CTX* tls) {
  auto connection = std::make_shared<ClientConnection>(socket, std::move(authority), poller,
                                                       std::move(events), tls);
  return connection->Begin(connection) ? connection : nullptr;
}

ClientConnection::ClientConnection(int socket, std::string authority, net::Poller* poller,
                                   Events events, SSL_CTX* tls)
    : authority_(std::move(authority)),
      poller_(poller),
      events_(std::move(events)),
      transport_(std::make_unique<net::Socket>(socket, tls)) {}

bool ClientConnection::Begin(const std::shared_ptr<ClientConnection>& self) {
  if (nghttp2_session_client_new(&transport_.session(), Callbacks::All(), this) != 0) return false;
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
  }};
  nghttp2_session* const session = transport_.session();
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  number_ = poller_->Add(transport_.socket().fd(), self);
  return true;
}

void ClientConnection::Send(CallPointer call) {
  const int32_t stream = Submit(call.get());
  if (stream < 0) {  // stream numbers are used up
    going_away_ = true;
    return events_.unsent(std::move(call));
  }
  calls_.emplace(stream, std::move(call));
}

// nghttp2 queues the request if the server's limit of concurrent streams is reached.
int32_t ClientConnection::Submit(ClientCall* call) {
  const ClientRequest& request = call->request;
  std::vector<nghttp2_nv> headers = {
      Literal(":method", "POST"),
      transport_.socket().is_tls() ? Literal(":scheme", "https") : Literal(":scheme", "http"),
      Named(":path", request.path),
      Named(":authority", authority_),
      Literal("te", "trailers"),
      Literal("content-type", "application/grpc"),
      Literal("user-agent", "grpc-c++-colcast"),
  };
  std::string timeout;
  if (request.deadline != scheduling::Clock::time_point::max()) {
    timeout = FormatTimeout(request.deadline - scheduling::Clock::now());
    headers.push_back(Named("grpc-timeout", timeout));
  }
  for (const auto& [name, value] : request.metadata) headers.push_back(Field(name, value));
  call->writer.Begin(request.message);
  call->is_sent = false;
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::ReadRequest;
  return nghttp2_submit_request(transport_.session(), nullptr, headers.data(), headers.size(),
                                &provider, nullptr);
}

ClientCall* ClientConnection::Find(int32_t stream) const {
  const auto place = calls_.find(stream);
  return place == calls_.end() ? nullptr : place->second.get();
}

ClientConnection::CallPointer ClientConnection::Take(int32_t stream) {
  auto node = calls_.extract(stream);
  return node.empty() ? nullptr : std::move(node.mapped());
}

bool ClientConnection::Cancel(uint64_t number, Status status) {
  const auto place = std::find_if(calls_.begin(), calls_.end(), [number](const auto& each) {
    return each.second->number == number;
  });
  if (place == calls_.end()) return false;
  const int32_t stream = place->first;
  CallPointer call = Take(stream);
  nghttp2_submit_rst_stream(transport_.session(), NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  events_.failed(std::move(call), std::move(status));
  return true;
}

int ClientConnection::Data(int32_t stream, const uint8_t* data, size_t size) {
  ClientCall* const call = Find(stream);
  if (call == nullptr || call->Read(transport_.block(), data, size)) return 0;
  nghttp2_submit_rst_stream(transport_.session(), NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  events_.ended(Take(stream), NGHTTP2_CANCEL);
  return 0;
}

int ClientConnection::StreamClosed(int32_t stream, uint32_t error) {
  CallPointer call = Take(stream);
  if (call == nullptr) return 0;
  if (error == NGHTTP2_REFUSED_STREAM) {
    events_.refused(std::move(call));
  } else {
    events_.ended(std::move(call), error);
  }
  return 0;
}

void ClientConnection::Happened(uint32_t events) {
  if (closed_) return;
  if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) Read();
  Write();
}

void ClientConnection::Read() {
  for (int i = 0; i < net::kReadsPerTurn; ++i) {
    const int error = is_connected_ ? 0 : ErrorOf(transport_.socket().fd());
    if (error != 0) return Close(Unavailable(std::strerror(error)));
    switch (transport_.Read()) {
      case Transport::Result::kNothing:
        return;
      case Transport::Result::kSome:
      case Transport::Result::kAll:
        is_connected_ = true;
        break;  // if the peer has also closed, no separate event announces it
      case Transport::Result::kClosed:
        return Close(Unavailable("the connection was closed"));
      case Transport::Result::kBroken:
        return Close(Unavailable("the server did not answer with HTTP/2"));
    }
  }
  poller_->Again(transport_.socket().fd(), number_);
}

void ClientConnection::Write() {
  if (closed_) return;
  const Transport::Result result = transport_.Write();
  if (result == Transport::Result::kNothing) return;
  if (result == Transport::Result::kClosed) return Close(Unavailable("the connection was closed"));
  is_connected_ = true;
  if (transport_.is_over()) Close(Unavailable("the connection has ended"));
}

void ClientConnection::Close(const Status& status) {
  if (closed_) return;
  closed_ = true;
  poller_->Remove(transport_.socket().fd(), number_);
  transport_.socket().Close();
  std::unordered_map<int32_t, CallPointer> calls = std::move(calls_);
  calls_.clear();
  for (auto& [stream, call] : calls) {
    if (!is_connected_) {
      events_.unsent(std::move(call));
    } else if (!call->is_sent) {
      events_.refused(std::move(call));
    } else {
      events_.failed(std::move(call), status);
    }
  }
  if (!is_connected_) events_.not_connected(status);
}

}  // namespace colcast::http2
