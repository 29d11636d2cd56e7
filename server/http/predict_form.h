// The REST form of a Predict request and its answer: TF Serving's (predict_json.h) or the Open
// Inference Protocol's (infer_json.h).
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
  // Finds the signature with that name, "" for the default one. The result must outlive the form.
  using FindSignature =
      std::function<Status(const std::string& name, const tensorflow::SignatureDef** signature)>;

  virtual ~PredictForm() = default;

  virtual const char* api() const { return "Predict"; }  // for the metrics

  // Fills request() from a body, replacing an earlier one. INVALID_ARGUMENT says where the error is
  // and what it is.
  virtual Status Read(const BodyBytes& body, const FindSignature& find) = 0;
  // Whether the request's values point into the body, which must then live as long.
  virtual bool keeps_body() const { return false; }

  virtual const std::string& signature_name() const = 0;  // empty if the body has none
  virtual DecodedRequest& request() = 0;

  // Fills the answer. INVALID_ARGUMENT for an output that the form cannot represent.
  virtual Status Write(const PredictResponse& outputs, Response* response) const = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PREDICT_FORM_H_
