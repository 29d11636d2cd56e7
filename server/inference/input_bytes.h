// What the inputs of requests take as tensors.
#ifndef COLCAST_SERVER_INFERENCE_INPUT_BYTES_H_
#define COLCAST_SERVER_INFERENCE_INPUT_BYTES_H_

#include <cstdint>
#include <vector>

#include "server/wire/predict_request.h"

namespace colcast::inference {

// Bytes, with columns of one row repeated to `rows`, from what the request says of itself: nothing
// is checked. At most a petabyte, whatever it claims.
int64_t InputBytes(const DecodedRequest& request, int64_t rows);

struct RequestOfRows {
  const DecodedRequest* request;
  int64_t rows;
};

// What requests to one signature take beyond that where they run together: lists are padded to the
// longest.
int64_t PaddingBytes(const std::vector<RequestOfRows>& requests);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_INPUT_BYTES_H_
