// The C++ types of dtypes.
#ifndef COLCAST_SERVER_WIRE_VISIT_NUMBER_H_
#define COLCAST_SERVER_WIRE_VISIT_NUMBER_H_

#include <cstdint>

#include "server/wire/data_type.h"

namespace colcast {

// Calls visit(T()) with the dtype's C++ type; false for dtypes that have none, and for DT_BOOL and
// DT_STRING.
template <typename Visit>
bool VisitNumber(DataType dtype, Visit&& visit) {
  switch (dtype) {
    case DT_FLOAT:
      return visit(float{}), true;
    case DT_DOUBLE:
      return visit(double{}), true;
    case DT_INT8:
      return visit(int8_t{}), true;
    case DT_INT16:
      return visit(int16_t{}), true;
    case DT_INT32:
      return visit(int32_t{}), true;
    case DT_INT64:
      return visit(int64_t{}), true;
    case DT_UINT8:
      return visit(uint8_t{}), true;
    case DT_UINT16:
      return visit(uint16_t{}), true;
    case DT_UINT32:
      return visit(uint32_t{}), true;
    case DT_UINT64:
      return visit(uint64_t{}), true;
    default:
      return false;
  }
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_VISIT_NUMBER_H_
