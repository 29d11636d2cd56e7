// Converts the body of a :predict request to columns.
#ifndef COLCAST_SERVER_REST_PREDICT_JSON_H_
#define COLCAST_SERVER_REST_PREDICT_JSON_H_

#include <deque>
#include <functional>
#include <string>

#include "server/base/status.h"
#include "server/http1/message.h"
#include "server/http1/request_memory.h"
#include "server/rest/body_text.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::http {

// The REST form of a Predict request and its answer: TF Serving's (PredictJson) or the Open
// Inference Protocol's (infer_json.h).
class PredictForm {
 public:
  // Finds the signature with that name, "" for the default one. The result must outlive the form.
  using FindSignature =
      std::function<Status(const std::string& name, const tensorflow::SignatureDef** signature)>;

  virtual ~PredictForm() = default;

  virtual const char* api() const { return "Predict"; }  // for the metrics

  // Fills request() from a body, replacing an earlier one. INVALID_ARGUMENT says where the error is
  // and what it is.
  virtual Status Read(const BodyBytes& body, const FindSignature& find) = 0;
  // Whether the request's values point into the body, which must then outlive them.
  virtual bool keeps_body() const { return false; }

  virtual const std::string& signature_name() const = 0;  // empty if the body has none
  virtual DecodedRequest& request() = 0;

  // Fills the answer. Returns INVALID_ARGUMENT for an output that the form cannot represent.
  virtual Status Write(const PredictResponse& outputs, Response* response) const = 0;
};

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
  // afterwards. The body is read twice if "signature_name" comes after them. An input with a
  // default may be absent; in row format it must then be absent from all rows. INVALID_ARGUMENT
  // names the input, the row and the element. A dtype that JSON cannot represent is UNIMPLEMENTED,
  // in row format INVALID_ARGUMENT, both as in TF Serving. Of several errors, returns a syntax
  // error first, then one in the signature's name, then the one that begins first in the text.
  Status Read(const BodyBytes& body, const FindSignature& find) override;

  const std::string& signature_name() const override { return signature_name_; }
  JsonFormat format() const { return format_; }
  DecodedRequest& request() override { return request_; }
  const DecodedRequest& request() const { return request_; }

  // Writes the outputs in the format of the inputs.
  Status Write(const PredictResponse& outputs, Response* response) const override;

 private:
  // Sets *again if the body names another signature after the inputs.
  Status ReadAs(const std::string& signature_name, const BodyBytes& body, const FindSignature& find,
                bool* again);

  RequestMemory* const memory_;
  std::string signature_name_;
  JsonFormat format_ = JsonFormat::kRows;
  DecodedRequest request_;
  std::deque<SliceBuffer> contents_;  // the values of its columns
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_PREDICT_JSON_H_
