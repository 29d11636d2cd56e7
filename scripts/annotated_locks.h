// Adds clang's thread safety annotations to locks of the standard library, because libc++ annotates
// only std::mutex and std::lock_guard. scripts/check_locks.sh includes this file before each source
// file; nothing else uses it.
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

#define ANNOTATED(...) __attribute__((__VA_ARGS__))

namespace std {

class ANNOTATED(capability("mutex")) annotated_shared_mutex : public shared_mutex {
 public:
  void lock() ANNOTATED(acquire_capability());
  void unlock() ANNOTATED(release_capability());
  void lock_shared() ANNOTATED(acquire_shared_capability());
  void unlock_shared() ANNOTATED(release_shared_capability());
};

template <typename Mutex>
class ANNOTATED(scoped_lockable) annotated_unique_lock : public unique_lock<Mutex> {
 public:
  explicit annotated_unique_lock(Mutex& mutex) ANNOTATED(acquire_capability(mutex));
  ~annotated_unique_lock() ANNOTATED(release_capability());
  void lock() ANNOTATED(acquire_capability());
  void unlock() ANNOTATED(release_capability());
};

template <typename Mutex>
class ANNOTATED(scoped_lockable) annotated_shared_lock : public shared_lock<Mutex> {
 public:
  explicit annotated_shared_lock(Mutex& mutex) ANNOTATED(acquire_shared_capability(mutex));
  ~annotated_shared_lock() ANNOTATED(release_generic_capability());
};

}  // namespace std

#define shared_mutex annotated_shared_mutex
#define unique_lock annotated_unique_lock
#define shared_lock annotated_shared_lock
