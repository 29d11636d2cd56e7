// A connected socket that never blocks, in the clear or, on a server's side, with TLS.
#ifndef COLCAST_SERVER_HTTP2_SOCKET_H_
#define COLCAST_SERVER_HTTP2_SOCKET_H_

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace colcast::http2 {

class Socket {
 public:
  enum class Result { kDone, kAgain, kClosed };

  // Owns `fd`. `tls` null: in the clear. The client begins the handshake, which goes on with what
  // is read and written.
  Socket(int fd, SSL_CTX* tls);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool is_tls() const { return tls_ != nullptr; }
  // Of the client's certificate, after the handshake; empty: it has none.
  std::string CertificateName() const;

  // kAgain: when the socket is ready next. *size is what there is room for, and then what was read.
  Result Read(uint8_t* data, size_t* size);
  // *size is what there is to be written, and then what was.
  Result Write(const uint8_t* data, size_t* size);
  // Ends both directions.
  void Close();

 private:
  Result TlsResult(int returned, size_t* size);

  const int fd_;
  SSL* tls_ = nullptr;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_SOCKET_H_
