// Reads the values of one serialized tensorflow.Feature, in the form that all protobuf writers
// emit.
//
// Feature is a oneof of three lists. TensorFlow's fast parser deviates from protobuf on merged
// messages, on bytes after a list and on wrong lengths. Such Features are refused here and left to
// TensorFlow; a Feature that is read has the same values in TensorFlow.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_VALUES_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/wire/data_type.h"

namespace colcast {

// Returned instead of a count for a refused Feature: its list does not have `dtype`, it contains
// more than one list, its list is neither one packed run nor all unpacked values, or it is
// malformed.
constexpr int64_t kUnreadable = -1;

// Writes the numbers of `feature`, which must not be empty, to `out`. Returns their count, or
// kUnreadable, which also covers more than `most`. `dtype` is DT_INT64 or DT_FLOAT.
int64_t ReadNumbers(DataType dtype, std::string_view feature, int64_t most, void* out);

// Appends the values of `feature`, which must not be empty, to `out`: numbers in memory layout,
// strings as records of TensorProto.string_val. Returns their count, or kUnreadable; in that case
// the appended bytes are unspecified.
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
