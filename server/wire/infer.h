// The Open Inference Protocol: decodes inference.ModelInferRequest into a request's columns, and
// writes ModelInferResponse as predict_response.h does. Values are answered in raw_output_contents,
// as in Triton.
#ifndef COLCAST_SERVER_WIRE_INFER_H_
#define COLCAST_SERVER_WIRE_INFER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "server/wire/reader.h"

namespace colcast {

inline constexpr char kSignatureParameter[] = "signature_name";

// Like DecodePredictRequest(), but stricter, as the protocol demands: also returns
// INVALID_ARGUMENT, naming the input, if an input has more or fewer values than its shape; if a
// request has raw and typed contents; if it has more or fewer raw contents than inputs; and if an
// input or parameter is invalid or repeated.
Status DecodeInferRequest(const Bytes& message, DecodedRequest* request,
                          size_t max_columns = std::numeric_limits<size_t>::max());

// Returns INTERNAL, naming the output, if the protocol has no name for its dtype.
Status WriteInferResponse(const PredictResponse& response, const MakeBuffer& make);

// The rest serves the decoder and its tests (infer_tensor.cc).

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

#endif  // COLCAST_SERVER_WIRE_INFER_H_
