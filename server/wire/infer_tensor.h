// Turns a tensor of the Open Inference Protocol into a column, for gRPC and REST.
#ifndef COLCAST_SERVER_WIRE_INFER_TENSOR_H_
#define COLCAST_SERVER_WIRE_INFER_TENSOR_H_

#include <cstdint>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/data_type.h"
#include "server/wire/predict_request.h"
#include "server/wire/reader.h"

namespace colcast {

// The wire type of a value in a field of InferTensorContents, if it is not packed.
WireType UnpackedTypeOfContents(uint32_t field);

// Map "INT64" <-> DT_INT64. A datatype without a dtype becomes DT_INVALID, a dtype without a
// datatype "".
DataType InferDataType(std::string_view datatype);
std::string_view InferDatatypeName(DataType dtype);

// Returns INVALID_ARGUMENT, naming the input, for a datatype that the protocol does not have.
Status ReadInferDatatype(std::string_view datatype, Column* column);

// Sets the values of a column that has a name, a dtype and dims. `raw` holds the elements in memory
// layout, each string after its four-byte length. Returns INVALID_ARGUMENT, naming the input, if
// `raw` has more or fewer elements than the shape, or a bool that is neither 0 nor 1.
Status SetRawValues(const Bytes& raw, Column* column);

// Like SetRawValues(), from typed fields of InferTensorContents: the well-formed messages in
// column->values.messages, which are merged. Values that must be copied are kept in `request`.
Status SetTypedValues(DecodedRequest* request, Column* column);

// Sets the requested version: a number, or else a label. An empty `version` requests none.
void SetInferVersion(std::string_view version, ModelSpec* spec);

// Returns INVALID_ARGUMENT for a parameter of a request, an input or an output that asks for a
// feature that the server lacks. Other parameters are ignored, as the protocol demands.
Status CheckInferParameter(std::string_view name);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_TENSOR_H_
