// The address of a server to connect to.
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
  // Parses "HOST:PORT", "[IPV6]:PORT" or "unix:PATH". Returns INVALID_ARGUMENT for anything else.
  static Status Parse(const std::string& text, Target* target);

  const std::string& text() const { return text_; }
  // The :authority of requests.
  std::string authority() const { return is_unix_ ? "localhost" : text_; }
  // All addresses of the name; UNAVAILABLE if there is none.
  Status Resolve(std::vector<Address>* addresses) const;

 private:
  std::string text_;
  bool is_unix_ = false;
  std::string host_;  // a host name, an address, or the socket's path
  std::string port_;
};

// Creates a non-blocking socket and starts connecting it. Returns UNAVAILABLE if that fails
// immediately.
Status Connect(const Address& address, int* socket);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_TARGET_H_
