// Deadlines of calls that go through the workers.
#ifndef COLCAST_SERVER_RPC_CALL_H_
#define COLCAST_SERVER_RPC_CALL_H_

#include <chrono>

#include "server/scheduling/worker_pool.h"

namespace colcast::rpc {

// gRPC counts deadlines on the wall clock, the queue on one that is never set.
scheduling::Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_CALL_H_
