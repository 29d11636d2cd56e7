// Containers that are emptied and filled again for each request.
#ifndef COLCAST_SERVER_WIRE_REUSE_H_
#define COLCAST_SERVER_WIRE_REUSE_H_

#include <cstddef>

namespace colcast {

// Keeps the memory for the next request, unless only an unusually large one would need it.
template <typename Container>
void ClearForReuse(Container* container) {
  constexpr size_t kMaxKeptElements = 4096;
  if (container->capacity() > kMaxKeptElements) {
    *container = Container();
  } else {
    container->clear();
  }
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_REUSE_H_
