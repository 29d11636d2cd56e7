// What every call that goes through the workers has in common.
#ifndef COLCAST_SERVER_RPC_CALL_H_
#define COLCAST_SERVER_RPC_CALL_H_

#include <chrono>

#include "server/scheduling/worker_pool.h"
#include "server/wire/status.h"

namespace colcast::rpc {

// gRPC counts deadlines on the wall clock, the queue on one that is never set.
scheduling::Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline);

// What the client of a call that never ran is told.
Status DropStatus(scheduling::DropReason reason);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_CALL_H_
