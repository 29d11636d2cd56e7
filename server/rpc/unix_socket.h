// The file of the unix socket on which a server listens.
#ifndef COLCAST_SERVER_RPC_UNIX_SOCKET_H_
#define COLCAST_SERVER_RPC_UNIX_SOCKET_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "server/base/status.h"

namespace colcast::rpc {

// The server listens on another path, then renames the socket, so that clients always find either
// the previous server or this one. Connections to the previous server last until it ends.
class UnixSocket {
 public:
  // Returns INVALID_ARGUMENT for a path that is too long; ALREADY_EXISTS if it is another kind of
  // file, or if another starting server will take it over; UNAVAILABLE if its directory is missing
  // or not writable.
  static Status Prepare(const std::string& path, UnixSocket* socket);

  // The path on which to listen.
  std::string listening_path() const { return path_ + '~'; }
  // Whether another server listened at the path during Prepare().
  bool in_use() const { return in_use_; }

  // Call when the server listens: moves the socket to its path. Returns UNAVAILABLE if that fails.
  Status Publish();

  // Removes the socket, unless another server has replaced it since.
  void Remove();

 private:
  std::string path_;
  bool in_use_ = false;
  std::optional<ino_t> published_;  // identifies the published file
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_UNIX_SOCKET_H_
