// The REST form of a request to Predict and its answer: in TF Serving's form (predict_json.h), or
// in that of the Open Inference Protocol (infer_json.h).
#ifndef COLCAST_SERVER_HTTP_PREDICT_FORM_H_
#define COLCAST_SERVER_HTTP_PREDICT_FORM_H_

#include <functional>
#include <string>

#include "server/base/status.h"
#include "server/http/body_text.h"
#include "server/http1/message.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::http {

class PredictForm {
 public:
  // The signature of that name, "" for the default one. It outlives this.
  using FindSignature =
      std::function<Status(const std::string& name, const tensorflow::SignatureDef** signature)>;

  virtual ~PredictForm() = default;

  virtual const char* api() const { return "Predict"; }  // for the metrics

  // Fills request() from a body, in place of an earlier one. INVALID_ARGUMENT says where and why.
  virtual Status Read(const BodyBytes& body, const FindSignature& find) = 0;
  // Whether the request's values lie in the body, which must live as long.
  virtual bool keeps_body() const { return false; }

  virtual const std::string& signature_name() const = 0;  // empty: the body has none
  virtual DecodedRequest& request() = 0;

  // Fills the answer. INVALID_ARGUMENT for an output that the form does not have.
  virtual Status Write(const PredictResponse& outputs, Response* response) const = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PREDICT_FORM_H_
