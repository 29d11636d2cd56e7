// If memory runs out for one request, fails that request instead of ending the process.
#ifndef COLCAST_SERVER_BASE_OUT_OF_MEMORY_H_
#define COLCAST_SERVER_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <utility>

#include "server/base/status.h"

namespace colcast {

// Returns what `work` returns; if it throws std::bad_alloc, RESOURCE_EXHAUSTED, which TensorFlow
// returns for its tensors.
template <typename Work>
Status WithinMemory(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("the server has no memory left for the request");
  }
}

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_OUT_OF_MEMORY_H_
