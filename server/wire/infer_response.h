// Writes inference.ModelInferResponse of the Open Inference Protocol in one pass, as
// predict_response.h does. Values go into raw_output_contents, as in Triton.
#ifndef COLCAST_SERVER_WIRE_INFER_RESPONSE_H_
#define COLCAST_SERVER_WIRE_INFER_RESPONSE_H_

#include "server/base/status.h"
#include "server/wire/predict_response.h"

namespace colcast {

// Returns INTERNAL, naming the output, if the protocol has no name for its dtype.
Status WriteInferResponse(const PredictResponse& response, const MakeBuffer& make);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_RESPONSE_H_
