// Writes inference.ModelInferResponse of the Open Inference Protocol in one pass, as
// predict_response.h does. Values go into raw_output_contents, as in Triton.
#ifndef COLCAST_SERVER_WIRE_INFER_RESPONSE_H_
#define COLCAST_SERVER_WIRE_INFER_RESPONSE_H_

#include <cstddef>
#include <cstdint>

#include "server/base/status.h"
#include "server/wire/predict_response.h"

namespace colcast {

// Returns INTERNAL, naming the output, if the protocol has no name for its dtype.
Status CheckInferResponse(const PredictResponse& response);

// Bytes of the serialized response. Requires CheckInferResponse to be ok.
size_t InferResponseSize(const PredictResponse& response);

// Writes exactly InferResponseSize(response) bytes to `out`.
void WriteInferResponse(const PredictResponse& response, uint8_t* out);

// The size and bytes of one output's elements as raw contents.
size_t RawSize(const OutputColumn& output);
uint8_t* WriteRaw(const OutputColumn& output, uint8_t* out);  // returns the end

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_RESPONSE_H_
