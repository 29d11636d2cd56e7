// Writes tensorflow.serving.PredictResponse directly from the output tensors: measures each once,
// then fills one buffer in one pass.
#ifndef COLCAST_SERVER_WIRE_PREDICT_RESPONSE_H_
#define COLCAST_SERVER_WIRE_PREDICT_RESPONSE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/data_type.h"

namespace colcast {

// One output tensor: the product of `dims` elements at `data`, row-major.
struct OutputColumn {
  std::string_view name;
  DataType dtype = DT_INVALID;
  Span<int64_t> dims;
  // Elements of ElementSize(dtype) bytes each; for DT_STRING anything that string_at understands.
  const void* data = nullptr;
  // DT_STRING only: returns element `index` of `data`. Must be deterministic.
  std::string_view (*string_at)(const void* data, int64_t index) = nullptr;

  int64_t ElementCount() const {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return count;
  }
};

enum class TensorEncoding {
  kTypedFields,    // float_val, int64_val, ...: TF Serving's default
  kTensorContent,  // the raw buffer: --enable_serialization_as_tensor_content
};

struct PredictResponse {
  std::string_view model_name;
  std::string_view signature_name;
  int64_t version = 0;
  std::string_view id;  // the request's, if the protocol has ids
  Span<OutputColumn> outputs;
  TensorEncoding encoding = TensorEncoding::kTypedFields;
};

// Provides memory for a serialized response of `bytes`, or returns an error, which ends writing.
using MakeBuffer = std::function<Status(size_t bytes, uint8_t** buffer)>;

inline MakeBuffer MakeString(std::string* text) {
  return [text](size_t bytes, uint8_t** buffer) {
    text->resize(bytes);
    *buffer = reinterpret_cast<uint8_t*>(text->data());
    return OkStatus();
  };
}

// Returns INTERNAL, naming the output, for a dtype that cannot be sent (resource, variant).
Status WritePredictResponse(const PredictResponse& response, const MakeBuffer& make);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_PREDICT_RESPONSE_H_
