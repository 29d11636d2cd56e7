// The supported gRPC channel arguments, under gRPC's names.
#ifndef COLCAST_SERVER_RPC_CHANNEL_ARGUMENTS_H_
#define COLCAST_SERVER_RPC_CHANNEL_ARGUMENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "server/http2/connection.h"

namespace colcast::rpc {

using ChannelArguments = std::vector<std::pair<std::string, std::string>>;

// Of repeated arguments the last value counts. Logs arguments that are unknown here or not numbers.
http2::ConnectionOptions ReadChannelArguments(const ChannelArguments& arguments);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_CHANNEL_ARGUMENTS_H_
