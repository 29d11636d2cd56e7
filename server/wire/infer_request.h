// Decodes inference.ModelInferRequest of the Open Inference Protocol into a request's columns.
#ifndef COLCAST_SERVER_WIRE_INFER_REQUEST_H_
#define COLCAST_SERVER_WIRE_INFER_REQUEST_H_

#include <cstddef>
#include <limits>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast {

inline constexpr char kSignatureParameter[] = "signature_name";

// Like DecodePredictRequest(), but stricter, as the protocol demands. Returns INVALID_ARGUMENT,
// naming the input, unless it has as many values as its shape; also for raw and typed contents in
// one request, for more or fewer raw contents than inputs, and for an input or parameter that is
// invalid or repeated.
Status DecodeInferRequest(const Bytes& message, DecodedRequest* request,
                          size_t max_columns = std::numeric_limits<size_t>::max());

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_REQUEST_H_
