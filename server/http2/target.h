// Where a client connects to.
#ifndef COLCAST_SERVER_HTTP2_TARGET_H_
#define COLCAST_SERVER_HTTP2_TARGET_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "server/base/status.h"

namespace colcast::http2 {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

class Target {
 public:
  // "HOST:PORT", "[IPV6]:PORT" or "unix:PATH". INVALID_ARGUMENT for another.
  static Status Parse(const std::string& text, Target* target);

  const std::string& text() const { return text_; }
  // The :authority of its requests.
  std::string authority() const { return is_unix_ ? "localhost" : text_; }
  // False if Resolve() asks a name server.
  bool is_literal() const;
  // All addresses of the name; UNAVAILABLE if there is none.
  Status Resolve(std::vector<Address>* addresses) const;

 private:
  Status LookUp(int flags, std::vector<Address>* addresses) const;

  std::string text_;
  bool is_unix_ = false;
  std::string host_;  // or the path
  std::string port_;
};

// A socket that is being connected and does not block. UNAVAILABLE if that has failed already.
Status Connect(const Address& address, int* socket);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_TARGET_H_
