// The file of a unix socket that a server listens on.
#ifndef COLCAST_SERVER_RPC_UNIX_SOCKET_H_
#define COLCAST_SERVER_RPC_UNIX_SOCKET_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "server/base/status.h"

namespace colcast::rpc {

// The server listens beside the path until the socket takes its place there, in one step: clients
// find the server that listened there before, or this one, at any time. Whoever is connected to the
// one before stays so until it ends.
class UnixSocket {
 public:
  // INVALID_ARGUMENT for a path that is too long, ALREADY_EXISTS for one that is another kind of
  // file, or that another server which still starts will take over, UNAVAILABLE for one in a
  // directory that is not there or cannot be written to.
  static Status Prepare(const std::string& path, UnixSocket* socket);

  // Where to listen.
  std::string listening_path() const { return path_ + '~'; }
  // Whether a server listened at the path when this was prepared.
  bool in_use() const { return in_use_; }

  // Once the server listens: moves the socket to its path. UNAVAILABLE if that fails.
  Status Publish();

  // Removes the socket, unless another server has taken its place since.
  void Remove();

 private:
  std::string path_;
  bool in_use_ = false;
  std::optional<ino_t> published_;  // which file it is
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_UNIX_SOCKET_H_
