// Converts the body of a :predict request to columns.
#ifndef COLCAST_SERVER_HTTP_PREDICT_JSON_H_
#define COLCAST_SERVER_HTTP_PREDICT_JSON_H_

#include <deque>
#include <string>

#include "server/base/status.h"
#include "server/http/body_text.h"
#include "server/http/predict_form.h"
#include "server/http1/request_memory.h"
#include "server/http1/slice_buffer.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

// The format of the request's inputs and of the response's outputs.
enum class JsonFormat {
  kRows,     // "instances" and "predictions"
  kColumns,  // "inputs" and "outputs"
};

// The request in a body; owns the memory of its columns.
class PredictJson final : public PredictForm {
 public:
  // `memory` may be null, and must outlive this object.
  explicit PredictJson(RequestMemory* memory) : memory_(memory) {}

  // Fills columns, with the signature's dtypes, from "instances" or "inputs"; `body` is not needed
  // afterwards. It is read twice if "signature_name" comes after them. An input with a default may
  // be absent; in row format, from all rows or from none. INVALID_ARGUMENT names the input, the row
  // and the element. A dtype that JSON cannot represent is UNIMPLEMENTED, in row format
  // INVALID_ARGUMENT, both as in TF Serving. Of several errors, the text's own comes first, then
  // the signature's, then the one whose culprit begins first.
  Status Read(const BodyBytes& body, const FindSignature& find) override;

  const std::string& signature_name() const override { return signature_name_; }
  JsonFormat format() const { return format_; }
  DecodedRequest& request() override { return request_; }
  const DecodedRequest& request() const { return request_; }

  // In the format of the inputs.
  Status Write(const PredictResponse& outputs, Response* response) const override;

 private:
  // Sets *again if the inputs came before the name of another signature.
  Status ReadAs(const std::string& signature_name, const BodyBytes& body, const FindSignature& find,
                bool* again);

  RequestMemory* const memory_;
  std::string signature_name_;
  JsonFormat format_ = JsonFormat::kRows;
  DecodedRequest request_;
  std::deque<SliceBuffer> contents_;  // the values of its columns
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PREDICT_JSON_H_
