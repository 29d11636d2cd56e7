// A tensor of the Open Inference Protocol -> a column, whether it came over gRPC or REST.
#ifndef COLCAST_SERVER_WIRE_INFER_TENSOR_H_
#define COLCAST_SERVER_WIRE_INFER_TENSOR_H_

#include <cstdint>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/data_type.h"
#include "server/wire/predict_request.h"

namespace colcast {

// "INT64" <-> DT_INT64. A type without a name in the protocol is DT_INVALID, and "" back.
DataType InferDataType(std::string_view datatype);
std::string_view InferDatatypeName(DataType dtype);

// INVALID_ARGUMENT, naming the input, for a datatype that the protocol does not have.
Status ReadInferDatatype(std::string_view datatype, Column* column);

// Gives a column, which has a name, a dtype and dims, its values: the elements as they lie in
// memory, each string behind its length of four bytes. INVALID_ARGUMENT, naming the input, unless
// they are exactly those of its shape, and for a bool other than 0 and 1.
Status SetRawValues(const Bytes& raw, Column* column);

// The same from the typed fields of InferTensorContents: the messages in column->values.messages,
// which are well-formed and merge. `request` keeps what is put together.
Status SetTypedValues(DecodedRequest* request, Column* column);

// The version that is asked for: a number, or else a label. Empty: none.
void SetInferVersion(std::string_view version, ModelSpec* spec);

// INVALID_ARGUMENT for a parameter, of a request, an input or an output, that asks for another
// answer than it would get. Others are ignored, as the protocol has it.
Status CheckInferParameter(std::string_view name);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_TENSOR_H_
