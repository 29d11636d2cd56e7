// The Open Inference Protocol: decodes inference.ModelInferRequest into a request's columns, and
// writes ModelInferResponse as predict_response.h does. Answers carry their values in
// raw_output_contents, as Triton's do.
#ifndef COLCAST_SERVER_WIRE_INFER_H_
#define COLCAST_SERVER_WIRE_INFER_H_

#include <cstddef>
#include <limits>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"

namespace colcast {

inline constexpr char kSignatureParameter[] = "signature_name";

// Like DecodePredictRequest(), but stricter, as the protocol demands: also returns
// INVALID_ARGUMENT, naming the input, if an input has more or fewer values than its shape; if a
// request has raw and typed contents; if it has more or fewer raw contents than inputs; if an input
// or parameter is invalid or repeated; and for a parameter that asks for a feature that the server
// lacks. Other parameters are ignored, as the protocol demands.
Status DecodeInferRequest(const Bytes& message, DecodedRequest* request,
                          size_t max_columns = std::numeric_limits<size_t>::max());

// Returns INTERNAL, naming the output, if the protocol has no name for its dtype.
Status WriteInferResponse(const PredictResponse& response, const MakeBuffer& make);

// Sets the requested version, or label if `version` is not a number. If empty, neither is set.
void SetInferVersion(std::string_view version, ModelSpec* spec);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_H_
