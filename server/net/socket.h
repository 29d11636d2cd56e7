// A connected socket that never blocks, unencrypted or with TLS.
#ifndef COLCAST_SERVER_NET_SOCKET_H_
#define COLCAST_SERVER_NET_SOCKET_H_

#include <openssl/types.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace colcast::net {

// A client's address in gRPC's form: "ipv4:10.0.0.7:51234", "ipv6:%5B::1%5D:51234", "unix:".
std::string PeerOf(const sockaddr_storage& address);

// Returns the host of a peer: "ipv4:10.0.0.7", "ipv6:[2001:db8::]/64". For IPv6 it is the /64
// network, because one host can use all of its addresses.
std::string HostOf(const std::string& peer);

// The address of a unix socket. REQUIRES that the path is shorter than sockaddr_un::sun_path.
sockaddr_un UnixAddress(const std::string& path);

// Whether the client is on this machine: on the loopback interface or a unix socket.
bool IsLocal(const std::string& peer);

class Socket {
 public:
  enum class Result { kDone, kAgain, kClosed };

  // Owns `fd`. `tls` is a server's or a client's context; null means no encryption. A client starts
  // the handshake, which continues during reads and writes, and sends the server name that its
  // context expects. Throws std::bad_alloc.
  Socket(int fd, SSL_CTX* tls);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool is_tls() const { return tls_ != nullptr; }
  // Whether a plain HTTP request arrived instead of a handshake. Nothing is encrypted from then on.
  bool got_plain_http() const { return got_plain_http_; }

  // kAgain means: try again when the socket is ready. *size is the room in `data`, and is set to
  // the number of bytes read. With TLS this may be 0 after TLS's own messages, and more data may
  // follow.
  Result Read(uint8_t* data, size_t* size);
  // *size is the number of bytes to write, and is set to the number written.
  Result Write(const uint8_t* data, size_t* size);
  // Continues the handshake. kDone means that it has ended.
  Result Handshake();
  // Tells the client that no more data will come.
  void EndWriting();
  // Ends both directions.
  void Close();

 private:
  Result ReadTls(uint8_t* data, size_t* size);
  Result TlsResult(int returned, size_t* size);

  const int fd_;
  SSL* tls_ = nullptr;
  bool got_plain_http_ = false;
  bool had_input_ = false;  // whether OpenSSL's last read returned data
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_SOCKET_H_
