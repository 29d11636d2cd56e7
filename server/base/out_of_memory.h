// Memory that one request does not get is that one's error, not the process's end.
#ifndef COLCAST_SERVER_BASE_OUT_OF_MEMORY_H_
#define COLCAST_SERVER_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <utility>

#include "server/base/status.h"

namespace colcast {

// What `work` returns; RESOURCE_EXHAUSTED, as TensorFlow has it for its tensors, if it throws
// std::bad_alloc.
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
