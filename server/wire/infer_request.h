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

// Like DecodePredictRequest(), but stricter, as the protocol demands: also returns
// INVALID_ARGUMENT, naming the input, if an input has more or fewer values than its shape; if a
// request has raw and typed contents; if it has more or fewer raw contents than inputs; and if an
// input or parameter is invalid or repeated.
Status DecodeInferRequest(const Bytes& message, DecodedRequest* request,
                          size_t max_columns = std::numeric_limits<size_t>::max());

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_REQUEST_H_
