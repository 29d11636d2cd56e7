// The values of one serialized tensorflow.Feature, read in the form that every writer gives it.
//
// Feature is a oneof of three lists. TensorFlow's fast parser has opinions of its own on what
// protobuf would merge, on bytes behind a list and on lengths that lie, and it answers for them.
// Here they are refused, and so left to it: what is read here has the same values there.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_VALUES_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/wire/data_type.h"

namespace colcast {

// Returned in place of a count for every refused Feature: another kind of list than `dtype`'s,
// anything in the Feature beside one list, a list that is neither one packed run nor unpacked
// values only, or one that is malformed.
constexpr int64_t kUnreadable = -1;

// Writes the numbers of `feature`, which is not empty, to `out`. Returns how many; kUnreadable for
// more than `most`, too. `dtype`: DT_INT64 or DT_FLOAT.
int64_t ReadNumbers(DataType dtype, std::string_view feature, int64_t most, void* out);

// Appends the values of `feature`, which is not empty, to `out`: numbers as they lie in memory,
// strings as records of TensorProto.string_val. Returns how many; `out` holds anything behind its
// old end if that is kUnreadable.
int64_t AppendValues(DataType dtype, std::string_view feature, std::string* out);

// Reads a length of at most five bytes; false if it goes past `end`.
inline bool ReadLength(const uint8_t** at, const uint8_t* end, size_t* length) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (*at == end) return false;
    const uint8_t byte = *(*at)++;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      *length = value;
      return value <= static_cast<uint64_t>(end - *at);
    }
  }
  return false;
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_VALUES_H_
