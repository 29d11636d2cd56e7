// The file of a unix socket, before a server listens on it.
#ifndef COLCAST_SERVER_RPC_UNIX_SOCKET_H_
#define COLCAST_SERVER_RPC_UNIX_SOCKET_H_

#include <string>

#include "server/wire/status.h"

namespace colcast::rpc {

// Removes the socket that a server which is gone left behind: gRPC would take over the path of one
// that lives just as well. INVALID_ARGUMENT for a path that is too long for a socket,
// ALREADY_EXISTS for one that is another kind of file, UNAVAILABLE for one that somebody listens
// on, or in a directory that is not there or can not be written to.
Status ClearSocketPath(const std::string& path);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_UNIX_SOCKET_H_
