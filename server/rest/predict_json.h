// Converts the body of a :predict request to columns.
#ifndef COLCAST_SERVER_REST_PREDICT_JSON_H_
#define COLCAST_SERVER_REST_PREDICT_JSON_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/http1/message.h"
#include "server/http1/request_memory.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::http {

// The format of the request's inputs and of the response's outputs.
enum class JsonFormat {
  kRows,     // "instances" and "predictions"
  kColumns,  // "inputs" and "outputs"
};

// The request in a body; owns the memory of its columns.
class PredictJson {
 public:
  // Finds the signature called `name`, or the default one if it is "". The result must outlive the
  // request.
  using FindSignature =
      std::function<Status(const std::string& name, const tensorflow::SignatureDef** signature)>;

  // `memory` may be null, and must outlive this object.
  explicit PredictJson(RequestMemory* memory) : memory_(memory) {}

  // Fills columns, with the signature's dtypes, from "instances" or "inputs" of `text`, which is
  // not needed afterwards; see ReadJson(). The text is read twice if "signature_name" follows the
  // inputs. An input with a default may be absent; in row format it must then be absent from all
  // rows. INVALID_ARGUMENT names the input, the row and the element. Returns RESOURCE_EXHAUSTED for
  // more than `max_rows` instances. As in TF Serving, a dtype that JSON cannot represent is an
  // UNIMPLEMENTED error, or INVALID_ARGUMENT in row format. Of several errors, returns a syntax
  // error first, then one in the signature's name, then the first one found in the inputs.
  Status Read(std::string_view text, int64_t max_rows, const FindSignature& find);

  const std::string& signature_name() const { return signature_name_; }  // empty if none is named
  JsonFormat format() const { return format_; }
  DecodedRequest& request() { return request_; }
  const DecodedRequest& request() const { return request_; }

  // Writes the outputs in the format of the inputs. Returns INVALID_ARGUMENT for an output that
  // JSON cannot represent.
  Status Write(const PredictResponse& outputs, Response* response) const;

 private:
  RequestMemory* const memory_;
  std::string signature_name_;
  JsonFormat format_ = JsonFormat::kRows;
  DecodedRequest request_;
  std::deque<CountedBytes> contents_;  // the values of the request's columns
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_PREDICT_JSON_H_
