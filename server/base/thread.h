// Makes threads; nothing else in the server does. If the system refuses a thread, the error has the
// thread's name. An exception in a thread's body is logged.
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

// A thread that is joined by the destructor.
class Thread {
 public:
  Thread() = default;
  // Like StartThread(), but throws if the thread is refused; RunCaught() turns that exception into
  // an error that names `what`. For members of objects that are made within RunCaught(), such as
  // the server or a model version.
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

// Runs `body` in a new thread. RESOURCE_EXHAUSTED if the system allows no more threads. After an
// exception, which is logged, `body` is run again after a short pause.
Status StartThread(const std::string& what, std::function<void()> body, Thread* thread);

// The maximum number of threads of one kind that a flag or file may ask for.
inline constexpr int kMostThreads = 4096;

// RESOURCE_EXHAUSTED unless `count` more threads can be created within the limits on processes and
// address space. Checked beforehand, because TensorFlow aborts the process if it cannot create one
// of its threads.
Status CheckThreadLimit(int count);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_H_
