// In which bucket what is learnt of requests of about the same size is kept.
#ifndef COLCAST_SERVER_SCHEDULING_BITS_OF_H_
#define COLCAST_SERVER_SCHEDULING_BITS_OF_H_

#include <cstdint>

namespace colcast::scheduling {

// Of 1 and less 0, of 2 and 3 one, of 4 to 7 two, and so on.
inline int BitsOf(int64_t number) {
  int bits = 0;
  for (; number > 1; number >>= 1) ++bits;
  return bits;
}

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_BITS_OF_H_
