// inference.ModelInferRequest of the Open Inference Protocol -> the columns of a request.
#ifndef COLCAST_SERVER_WIRE_INFER_REQUEST_H_
#define COLCAST_SERVER_WIRE_INFER_REQUEST_H_

#include <cstddef>
#include <limits>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast {

// The request parameter that names the signature.
inline constexpr char kSignatureParameter[] = "signature_name";

// As DecodePredictRequest(), and stricter, as the protocol is: the values of each input are looked
// at, too, and must be exactly those of its shape. INVALID_ARGUMENT, naming the input, if they are
// not; for raw and typed contents in one request, or another number of raw ones than of inputs; for
// an input or parameter that is wrong or comes twice.
Status DecodeInferRequest(const Bytes& message, DecodedRequest* request,
                          size_t max_columns = std::numeric_limits<size_t>::max());

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_REQUEST_H_
