// Estimates how much memory the inputs of requests take as tensors.
#ifndef COLCAST_SERVER_INFERENCE_INPUT_BYTES_H_
#define COLCAST_SERVER_INFERENCE_INPUT_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/wire/predict_request.h"

namespace colcast::inference {

// Bytes of all tensors, with one-row columns repeated to `rows`. Trusts the sizes that the request
// declares, and returns at most a petabyte.
int64_t InputBytes(const DecodedRequest& request, int64_t rows);

// The input that takes most memory: `input "x" of shape [1,1000]`; empty if there is none.
std::string LargestInput(const DecodedRequest& request, int64_t rows);

struct RequestOfRows {
  const DecodedRequest* request;
  int64_t rows;
};

// Additional bytes if requests to one signature are batched: lists are padded to the longest.
int64_t PaddingBytes(const std::vector<RequestOfRows>& requests);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_INPUT_BYTES_H_
