// Buckets requests by size, for what is learnt about requests of about the same size.
#ifndef COLCAST_SERVER_SCHEDULING_BITS_OF_H_
#define COLCAST_SERVER_SCHEDULING_BITS_OF_H_

#include <cstdint>

namespace colcast::scheduling {

// floor(log2(number)); 0 for 1 and less.
inline int BitsOf(int64_t number) {
  int bits = 0;
  for (; number > 1; number >>= 1) ++bits;
  return bits;
}

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_BITS_OF_H_
