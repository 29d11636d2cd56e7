// What a call says, in one of its forms: a request from bytes, and bytes from its result. A codec
// holds the exchange that its bytes come from and go to.
#ifndef COLCAST_SERVER_API_CODEC_H_
#define COLCAST_SERVER_API_CODEC_H_

#include "server/api/exchange.h"
#include "server/base/status.h"
#include "server/scheduling/job.h"
#include "server/wire/bytes.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::api {

class Call;
class PredictCall;

class Codec {
 public:
  virtual ~Codec() = default;

  virtual const char* api() const = 0;  // for the metrics: Predict
  virtual Exchange& exchange() = 0;

  // Reads the request, unless that was done, and has `call` find its servable. On a worker.
  virtual Status Read(Call* call) = 0;

  // The messages of TensorFlow Serving's gRPC, once the call is answered; false if it came in
  // another form. They live as long as the codec.
  virtual bool messages(Bytes* /*request*/, Bytes* /*response*/) { return false; }
};

// Columns in, columns out: Predict, ModelInfer.
class PredictCodec : public Codec {
 public:
  // As Job has it. May read the request.
  virtual void Describe(PredictCall* call, scheduling::JobProfile* profile) = 0;
  virtual DecodedRequest& request() = 0;
  // Errors if the form has no such output, or the answer is too large.
  virtual Status Write(const PredictResponse& response) = 0;
};

// tf.Examples in, classes or numbers out: Classify, Regress, MultiInference.
class ExamplesCodec : public Codec {
 public:
  virtual const tensorflow::serving::MultiInferenceRequest& tasks() const = 0;
  virtual const ExampleInput& input() const = 0;
  virtual Status Write(const tensorflow::serving::MultiInferenceResponse& response) = 0;
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_CODEC_H_
