// Makes threads: the only way to. One that the system refuses is an error with its name, and an
// exception in its body is a line in the log.
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

// Joined when it is destroyed.
class Thread {
 public:
  Thread() = default;
  // As StartThread(), but a refusal is an exception, which RunCaught() makes an error that names
  // `what`. For members of objects that are made within RunCaught(): the server, a version.
  Thread(const std::string& what, std::function<void()> body);
  ~Thread();
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;

  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }

 private:
  std::thread thread_;
};

// Runs `body` in a new thread. RESOURCE_EXHAUSTED if the system allows no other. After an
// exception, which is logged, `body` runs again a moment later.
Status StartThread(const std::string& what, std::function<void()> body, Thread* thread);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_H_
