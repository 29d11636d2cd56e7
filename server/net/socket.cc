#include "server/net/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "server/base/log.h"
#include "server/base/text.h"

namespace colcast::net {

std::string PeerOf(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return std::string("ipv4:") + host + ':' + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
    return std::string("ipv6:[") + host + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "unix:";
}

std::string HostOf(const std::string& peer) {
  if (StartsWith(peer, "ipv4:")) return peer.substr(0, peer.rfind(':'));
  constexpr std::string_view kIpv6 = "ipv6:[";
  constexpr size_t kNetworkBytes = 8;
  const size_t end = peer.rfind(']');
  in6_addr address{};
  if (!StartsWith(peer, kIpv6) || end == std::string::npos ||
      inet_pton(AF_INET6, peer.substr(kIpv6.size(), end - kIpv6.size()).c_str(), &address) != 1) {
    return peer;
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
    return std::string("ipv4:") + text;
  }
  std::fill(address.s6_addr + kNetworkBytes, std::end(address.s6_addr), 0);
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return std::string(kIpv6) + text + "]/64";
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

bool IsLocal(const std::string& peer) {
  for (const char* local : {"ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:", "unix:"}) {
    if (StartsWith(peer, local)) return true;
  }
  return false;
}

namespace {

Socket::Result ResultOf(ssize_t returned, size_t* size) {
  if (returned >= 0) {
    *size = static_cast<size_t>(returned);
    return Socket::Result::kDone;
  }
  const bool again = errno == EAGAIN || errno == EWOULDBLOCK;
  return again ? Socket::Result::kAgain : Socket::Result::kClosed;
}

// Notes whether the last read returned data, because OpenSSL reports "again" both for an empty
// socket and after a TLS message without data.
long NoteInput(BIO* bio, int operation, const char*, size_t, int, long, int returned, size_t*) {
  if (operation == (BIO_CB_READ | BIO_CB_RETURN)) {
    *reinterpret_cast<bool*>(BIO_get_callback_arg(bio)) = returned > 0;
  }
  return returned;
}

int Most(size_t size) {
  return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
}

// Warns of a client whose first bytes are text instead of a TLS record.
void WarnOfPlainText() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  LogWarning(
      "a client without TLS has connected; this port accepts only TLS (--ssl_config_file). "
      "Logged once");
}

}  // namespace

Socket::Socket(int fd, SSL_CTX* tls) : fd_(fd) {
  if (tls == nullptr) return;
  tls_ = SSL_new(tls);
  if (tls_ == nullptr) {
    close(fd_);
    throw std::bad_alloc();
  }
  SSL_set_fd(tls_, fd_);
  if (SSL_is_server(tls_) != 0) {
    SSL_set_accept_state(tls_);
  } else {
    SSL_set_connect_state(tls_);
    const char* const name = X509_VERIFY_PARAM_get0_host(SSL_get0_param(tls_), 0);
    if (name != nullptr) SSL_set_tlsext_host_name(tls_, name);
  }
  SSL_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // With auto-retry, SSL_read would not return while a client keeps sending KeyUpdates.
  SSL_clear_mode(tls_, SSL_MODE_AUTO_RETRY);
  BIO_set_callback_arg(SSL_get_rbio(tls_), reinterpret_cast<char*>(&had_input_));
  BIO_set_callback_ex(SSL_get_rbio(tls_), NoteInput);
}

Socket::~Socket() {
  SSL_free(tls_);
  close(fd_);
}

Socket::Result Socket::Read(uint8_t* data, size_t* size) {
  if (tls_ != nullptr) return ReadTls(data, size);
  ssize_t received = 0;
  do {
    received = recv(fd_, data, *size, 0);
  } while (received < 0 && errno == EINTR);
  return received == 0 ? Result::kClosed : ResultOf(received, size);
}

Socket::Result Socket::ReadTls(uint8_t* data, size_t* size) {
  constexpr int kMaxOwnMessages = 16;
  const int most = Most(*size);
  for (int i = 0; i < kMaxOwnMessages; ++i) {
    ERR_clear_error();
    had_input_ = false;
    const Result result = TlsResult(SSL_read(tls_, data, most), size);
    if (result != Result::kAgain || !had_input_) return result;
  }
  *size = 0;
  return Result::kDone;
}

Socket::Result Socket::Write(const uint8_t* data, size_t* size) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    return TlsResult(SSL_write(tls_, data, Most(*size)), size);
  }
  ssize_t sent = 0;
  do {
    sent = send(fd_, data, *size, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return ResultOf(sent, size);
}

Socket::Result Socket::Handshake() {
  size_t ignored = 0;
  ERR_clear_error();
  return TlsResult(SSL_do_handshake(tls_), &ignored);
}

Socket::Result Socket::TlsResult(int returned, size_t* size) {
  if (returned > 0) {
    *size = static_cast<size_t>(returned);
    return Result::kDone;
  }
  const int error = SSL_get_error(tls_, returned);
  const int reason = ERR_GET_REASON(ERR_peek_error());
  if (error == SSL_ERROR_SSL && reason == SSL_R_WRONG_VERSION_NUMBER) WarnOfPlainText();
  ERR_clear_error();
  if (error == SSL_ERROR_SSL && reason == SSL_R_HTTP_REQUEST) {
    got_plain_http_ = true;
    SSL_free(std::exchange(tls_, nullptr));
  }
  const bool again = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  return again ? Result::kAgain : Result::kClosed;
}

void Socket::EndWriting() {
  if (tls_ != nullptr) {
    SSL_shutdown(tls_);
    ERR_clear_error();
  }
  shutdown(fd_, SHUT_WR);
}

void Socket::Close() { shutdown(fd_, SHUT_RDWR); }

}  // namespace colcast::net
