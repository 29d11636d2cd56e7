#include "server/rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "server/net/socket.h"

namespace colcast::rpc {
namespace {

bool SomeoneListens(const std::string& path) {
  const sockaddr_un address = net::UnixAddress(path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const int failed = connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  close(socket);
  return failed == 0;
}

// Whether the directory of `path` is writable; if not, sets errno.
bool DirectoryIsWritable(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  return access(directory.empty() ? "." : directory.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Status UnixSocket::Prepare(const std::string& path, UnixSocket* socket) {
  constexpr size_t kMost =
      sizeof(sockaddr_un::sun_path) - 2;  // room for the '~' of listening_path() and a NUL
  if (path.size() > kMost) {
    return InvalidArgument("the socket path ", path, " has ", path.size(), " bytes; at most ",
                           kMost, " are allowed");
  }
  struct stat file;
  const bool exists = lstat(path.c_str(), &file) == 0;
  if ((!exists && errno != ENOENT) || !DirectoryIsWritable(path)) {
    return Unavailable("cannot listen on ", path, ": ", std::strerror(errno));
  }
  if (exists && !S_ISSOCK(file.st_mode)) {
    return Error(StatusCode::kAlreadyExists, "cannot listen on ", path,
                 ": the file there is not a socket");
  }
  socket->path_ = path;
  if (SomeoneListens(socket->listening_path())) {
    return Error(StatusCode::kAlreadyExists, "cannot listen on ", path,
                 ": another server is starting that will take it over");
  }
  unlink(socket->listening_path().c_str());  // left by a server that was killed
  socket->in_use_ = exists && SomeoneListens(path);
  return OkStatus();
}

Status UnixSocket::Publish() {
  struct stat file;
  const std::string from = listening_path();
  if (lstat(from.c_str(), &file) != 0 || rename(from.c_str(), path_.c_str()) != 0) {
    return Unavailable("cannot listen on ", path_, ": ", std::strerror(errno));
  }
  published_ = file.st_ino;
  return OkStatus();
}

void UnixSocket::Remove() {
  struct stat file;
  if (published_ && lstat(path_.c_str(), &file) == 0 && file.st_ino == *published_) {
    unlink(path_.c_str());
  }
  published_.reset();
}

}  // namespace colcast::rpc
