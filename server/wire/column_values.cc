#include "server/wire/column_values.h"

namespace colcast {

ValueField ValueFieldOf(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return ValueField::kFloat;
    case DT_DOUBLE:
      return ValueField::kDouble;
    case DT_INT32:
    case DT_INT16:
    case DT_INT8:
    case DT_UINT8:
    case DT_UINT16:
    case DT_QINT8:
    case DT_QUINT8:
    case DT_QINT16:
    case DT_QUINT16:
    case DT_QINT32:
    case DT_INT4:
    case DT_UINT4:
    case DT_INT2:
    case DT_UINT2:
      return ValueField::kInt;
    case DT_STRING:
      return ValueField::kString;
    case DT_COMPLEX64:
      return ValueField::kScomplex;
    case DT_INT64:
      return ValueField::kInt64;
    case DT_BOOL:
      return ValueField::kBool;
    case DT_COMPLEX128:
      return ValueField::kDcomplex;
    case DT_HALF:
    case DT_BFLOAT16:
      return ValueField::kHalf;
    case DT_UINT32:
      return ValueField::kUint32;
    case DT_UINT64:
      return ValueField::kUint64;
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
    case DT_FLOAT8_E4M3FNUZ:
    case DT_FLOAT8_E4M3B11FNUZ:
    case DT_FLOAT8_E5M2FNUZ:
      return ValueField::kFloat8;
    default:
      return ValueField::kNone;
  }
}

int64_t ValuesPerElement(ValueField field) {
  return field == ValueField::kScomplex || field == ValueField::kDcomplex ? 2 : 1;
}

}  // namespace colcast
