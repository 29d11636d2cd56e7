// The body of the Open Inference Protocol's infer request -> columns, and outputs -> that of its
// answer: JSON, with tensors in it or, in the binary data extension, behind it.
#ifndef COLCAST_SERVER_HTTP_INFER_JSON_H_
#define COLCAST_SERVER_HTTP_INFER_JSON_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/predict_form.h"
#include "server/http1/request_memory.h"
#include "server/http1/slice_buffer.h"
#include "server/wire/bytes.h"

namespace colcast::http {

// How long the JSON is at the front of a body that has tensors behind it: a header of requests and
// answers.
inline constexpr char kInferHeaderLength[] = "Inference-Header-Content-Length";

// A tensor that a request lists, as far as it has been read.
struct InferTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  bool has_data = false;
  int64_t binary_bytes = -1;  // of an input behind the JSON; -1: none
  int binary_output = -1;     // of an output whether it is to come so; -1: as the request has it
};

class InferJson final : public PredictForm {
 public:
  // `header_length`: the header's value, empty if there was none. `memory` may be null, and
  // outlives this.
  InferJson(std::string header_length, size_t max_inputs, RequestMemory* memory)
      : header_length_(std::move(header_length)),
        max_inputs_(max_inputs),
        memory_(memory),
        inflated_(memory) {}

  const char* api() const override { return "ModelInfer"; }

  // Values are read as the datatypes that the request gives, each input's exactly those of its
  // shape; whether the signature takes them is the engine's to say. `find` is not asked.
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
  SliceBuffer inflated_;              // a compressed body with binary tensors
  std::deque<SliceBuffer> contents_;  // of columns that came as JSON
  std::vector<InferTensor> inputs_;   // as the columns
  std::vector<InferTensor> outputs_;
  std::string signature_name_;
  std::string id_;
  bool binary_outputs_ = false;
  DecodedRequest request_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_INFER_JSON_H_
