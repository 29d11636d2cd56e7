// inference.GRPCInferenceService: the Open Inference Protocol, version 2, which KServe's and
// Triton's clients speak (docs/inference_protocol.md).
#ifndef COLCAST_SERVER_RPC_INFERENCE_SERVICE_H_
#define COLCAST_SERVER_RPC_INFERENCE_SERVICE_H_

#include "server/backend.h"
#include "server/http2/call.h"

namespace colcast::rpc {

inline constexpr char kInferenceService[] = "inference.GRPCInferenceService";

// The header by which ModelMetadata is asked for another signature than the default one.
inline constexpr char kSignatureHeader[] = "x-colcast-signature-name";

// `backend` must outlive them.
http2::Methods InferenceMethods(const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_INFERENCE_SERVICE_H_
