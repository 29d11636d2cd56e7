// A connected socket that never blocks, in the clear or with TLS.
#ifndef COLCAST_SERVER_NET_SOCKET_H_
#define COLCAST_SERVER_NET_SOCKET_H_

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace colcast::net {

class Socket {
 public:
  enum class Result { kDone, kAgain, kClosed };

  // Owns `fd`. `tls`: a server's or a client's context, null: in the clear. The client begins the
  // handshake, which goes on with what is read and written, and sends the name that its context
  // expects. Throws std::bad_alloc.
  Socket(int fd, SSL_CTX* tls);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool is_tls() const { return tls_ != nullptr; }
  // Of the client's certificate, after the handshake; empty: it has none.
  std::string CertificateName() const;
  // The protocol that was agreed upon in the handshake: "h2". Empty: none, or it has not ended.
  std::string_view protocol() const;
  // Whether a request in plain HTTP came in place of a handshake. From then on nothing is secured.
  bool got_plain_http() const { return got_plain_http_; }

  // kAgain: when the socket is ready next. *size is what there is room for, and then what was read;
  // with TLS, none where its own messages came, more of which may follow.
  Result Read(uint8_t* data, size_t* size);
  // *size is what there is to be written, and then what was.
  Result Write(const uint8_t* data, size_t* size);
  // As Read(), but leaves the bytes where they are. In the clear only.
  Result Peek(uint8_t* data, size_t* size) const;
  // Continues the handshake. kDone: it has ended.
  Result Handshake();
  // Tells the client that nothing more comes.
  void EndWriting();
  // Ends both directions.
  void Close();

 private:
  Result Receive(uint8_t* data, size_t* size, int flags) const;
  Result ReadTls(uint8_t* data, size_t* size);
  Result TlsResult(int returned, size_t* size);

  const int fd_;
  SSL* tls_ = nullptr;
  bool got_plain_http_ = false;
  bool had_input_ = false;  // the last time that OpenSSL read
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_SOCKET_H_
