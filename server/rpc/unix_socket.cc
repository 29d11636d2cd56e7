#include "server/rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace colcast::rpc {
namespace {

// 0 if somebody listens there, else connect()'s errno.
int ConnectError(const sockaddr_un& address) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  const int failed = connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = failed == 0 ? 0 : errno;
  close(socket);
  return error;
}

// Sets errno if it is not.
bool DirectoryIsWritable(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  return access(directory.empty() ? "." : directory.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Status ClearSocketPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("the socket path ", path, " has ", path.size(), " bytes; at most ",
                           sizeof(address.sun_path) - 1, " are possible");
  }
  path.copy(address.sun_path, path.size());
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) {
    if (errno == ENOENT && DirectoryIsWritable(path)) return OkStatus();
    return Unavailable("can not listen on ", path, ": ", std::strerror(errno));
  }
  if (!S_ISSOCK(file.st_mode)) {
    return Error(StatusCode::kAlreadyExists, "can not listen on ", path,
                 ": a file that is no socket lies there");
  }
  const int error = ConnectError(address);
  if (error == 0) return Unavailable("can not listen on ", path, ": another server does");
  if (error == ECONNREFUSED && unlink(path.c_str()) == 0) return OkStatus();
  return Unavailable("can not listen on ", path, ": ",
                     std::strerror(error == ECONNREFUSED ? errno : error));
}

}  // namespace colcast::rpc
