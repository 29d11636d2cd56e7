// inference.ModelInferResponse of the Open Inference Protocol, written as a PredictResponse is; its
// values are in raw_output_contents, as in Triton.
#ifndef COLCAST_SERVER_WIRE_INFER_RESPONSE_H_
#define COLCAST_SERVER_WIRE_INFER_RESPONSE_H_

#include <cstddef>
#include <cstdint>

#include "server/base/status.h"
#include "server/wire/predict_response.h"

namespace colcast {

// INTERNAL, naming the output, if one has a dtype that the protocol has no name for.
Status CheckInferResponse(const PredictResponse& response);

// Bytes of the serialized response. Requires CheckInferResponse to be ok.
size_t InferResponseSize(const PredictResponse& response);

// Writes exactly InferResponseSize(response) bytes to `out`.
void WriteInferResponse(const PredictResponse& response, uint8_t* out);

// The same for one output's elements alone, as raw contents have them.
size_t RawSize(const OutputColumn& output);
uint8_t* WriteRaw(const OutputColumn& output, uint8_t* out);  // returns the byte behind them

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFER_RESPONSE_H_
