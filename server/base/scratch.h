// Memory that threads keep for their next request.
#ifndef COLCAST_SERVER_BASE_SCRATCH_H_
#define COLCAST_SERVER_BASE_SCRATCH_H_

#include <cstddef>

namespace colcast {

// Threads free larger vectors, or every thread that ever ran a large request would keep its memory.
inline constexpr size_t kMostKeptBytes = 1 << 20;

// Frees a thread-local vector at the end of its use if it is larger than kMostKeptBytes.
template <typename Vector>
class FreeIfLarge {
 public:
  explicit FreeIfLarge(Vector* kept) : kept_(*kept) {}
  ~FreeIfLarge() {
    if (kept_.capacity() > kMostKeptBytes / sizeof(kept_[0])) Vector().swap(kept_);
  }
  FreeIfLarge(const FreeIfLarge&) = delete;
  FreeIfLarge& operator=(const FreeIfLarge&) = delete;

 private:
  Vector& kept_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_SCRATCH_H_
