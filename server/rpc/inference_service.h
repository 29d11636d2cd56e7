// inference.GRPCInferenceService: the Open Inference Protocol, version 2, used by clients of KServe
// and Triton (docs/inference_protocol.md).
#ifndef COLCAST_SERVER_RPC_INFERENCE_SERVICE_H_
#define COLCAST_SERVER_RPC_INFERENCE_SERVICE_H_

#include "server/backend.h"
#include "server/http2/call.h"

namespace colcast::rpc {

inline constexpr char kInferenceService[] = "inference.GRPCInferenceService";

// The request header of ModelMetadata that names a signature other than the default.
inline constexpr char kSignatureHeader[] = "x-colcast-signature-name";

// `backend` must outlive the methods.
http2::Methods InferenceMethods(const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_INFERENCE_SERVICE_H_
