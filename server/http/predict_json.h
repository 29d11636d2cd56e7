// The body of a :predict request -> columns.
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

// How the request gives its inputs, and the response its outputs.
enum class JsonFormat {
  kRows,     // "instances" and "predictions"
  kColumns,  // "inputs" and "outputs"
};

// A body's request, and the memory of its columns.
class PredictJson final : public PredictForm {
 public:
  // `memory` may be null, and outlives this.
  explicit PredictJson(RequestMemory* memory) : memory_(memory) {}

  // Fills columns, with the dtypes of the signature, from "instances" or "inputs"; `body` may go
  // then. It is read once, or twice if "signature_name" comes behind them. An input that the
  // signature has a default for may be absent; in rows it is absent from all or from none.
  // INVALID_ARGUMENT says where and what: which input, which row, which element. UNIMPLEMENTED for
  // a dtype without a form in JSON, in rows INVALID_ARGUMENT: both as in TF Serving. Of several
  // errors: the text's own, then the signature's, then the one whose culprit begins first.
  Status Read(const BodyBytes& body, const FindSignature& find) override;

  const std::string& signature_name() const override { return signature_name_; }
  JsonFormat format() const { return format_; }
  DecodedRequest& request() override { return request_; }
  const DecodedRequest& request() const { return request_; }

  // In the format in which the inputs came.
  Status Write(const PredictResponse& outputs, Response* response) const override;

 private:
  // *again: the inputs came before another signature's name.
  Status ReadAs(const std::string& signature_name, const BodyBytes& body, const FindSignature& find,
                bool* again);

  RequestMemory* const memory_;
  std::string signature_name_;
  JsonFormat format_ = JsonFormat::kRows;
  DecodedRequest request_;
  std::deque<SliceBuffer> contents_;  // of its columns
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PREDICT_JSON_H_
