// Converts the body of an Open Inference Protocol infer request to columns, and outputs to the body
// of its answer. Tensors are in the JSON or, with the binary data extension, after it.
#ifndef COLCAST_SERVER_REST_INFER_JSON_H_
#define COLCAST_SERVER_REST_INFER_JSON_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http1/request_memory.h"
#include "server/rest/predict_json.h"
#include "server/wire/bytes.h"

namespace colcast::http {

// The header of requests and answers that gives the length of the JSON in a body with tensors after
// it.
inline constexpr char kInferHeaderLength[] = "Inference-Header-Content-Length";

// A tensor that a request lists, as far as it has been read.
struct InferTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  bool has_data = false;
  int64_t binary_bytes = -1;  // size of an input after the JSON; -1 if it is in the JSON
  // Whether to send an output in binary form; -1 if the request's general setting applies.
  int binary_output = -1;
};

class InferJson final : public PredictForm {
 public:
  // `header_length` is the header's value, empty if there was none. `memory` may be null, and must
  // outlive this object.
  InferJson(std::string header_length, size_t max_inputs, RequestMemory* memory)
      : header_length_(std::move(header_length)),
        max_inputs_(max_inputs),
        memory_(memory),
        inflated_(memory) {}

  const char* api() const override { return "ModelInfer"; }

  // Reads values with the datatypes given in the request, and checks that each input has as many
  // values as its shape; the engine decides whether the signature accepts them. Does not call
  // `find`.
  Status Read(const BodyBytes& body, const FindSignature& find) override;
  bool keeps_body() const override { return !header_length_.empty() && inflated_.size() == 0; }
  const std::string& signature_name() const override { return signature_name_; }
  DecodedRequest& request() override { return request_; }
  Status Write(const PredictResponse& outputs, Response* response) const override;

 private:
  Status ReadJsonPart(const BodyBytes& json);
  Status ReadBinaryPart(const Bytes& binary);
  bool IsBinary(std::string_view output) const;

  const std::string header_length_;
  const size_t max_inputs_;
  RequestMemory* const memory_;
  SliceBuffer inflated_;              // a decompressed body with binary tensors
  std::deque<SliceBuffer> contents_;  // values of columns that were in the JSON
  std::vector<InferTensor> inputs_;   // in the order of the columns
  std::vector<InferTensor> outputs_;
  std::string signature_name_;
  std::string id_;
  bool binary_outputs_ = false;
  DecodedRequest request_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_INFER_JSON_H_
