// Makes threads, and ends none of their exceptions in the end of the process.
#ifndef COLCAST_SERVER_BASE_THREAD_H_
#define COLCAST_SERVER_BASE_THREAD_H_

#include <functional>
#include <string>
#include <thread>

#include "server/base/status.h"

namespace colcast {

// Turns an exception that leaves `body` into an error that names `what`: RESOURCE_EXHAUSTED if
// memory or threads are exhausted, otherwise INTERNAL.
Status RunCaught(const std::string& what, const std::function<Status()>& body);

// Runs `body` in a new thread. RESOURCE_EXHAUSTED if the system allows no other. After an
// exception, which is logged, `body` runs again a moment later.
Status StartThread(const std::string& what, std::function<void()> body, std::thread* thread);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_H_
