// Converts a call's request from bytes, and its result to bytes, in one form. A codec holds the
// exchange from which the bytes come and to which they go.
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

  virtual const char* api() const = 0;  // for the metrics, for example "Predict"
  virtual Exchange& exchange() = 0;

  // Reads the request, unless already done, and lets `call` find its servable. Called on a worker.
  virtual Status Read(Call* call) = 0;

  // The messages in the form of TensorFlow Serving's gRPC, after the answer; false if the call has
  // another form. They live as long as the codec.
  virtual bool messages(Bytes* /*request*/, Bytes* /*response*/) { return false; }
};

// For APIs with columns in request and answer: Predict, ModelInfer.
class PredictCodec : public Codec {
 public:
  // See Job::Describe(). May read the request.
  virtual void Describe(PredictCall* call, scheduling::JobProfile* profile) = 0;
  virtual DecodedRequest& request() = 0;
  // Fails if the form cannot represent an output, or if the answer is too large.
  virtual Status Write(const PredictResponse& response) = 0;
};

// For APIs that answer tf.Examples with classes or numbers: Classify, Regress, MultiInference.
class ExamplesCodec : public Codec {
 public:
  virtual const tensorflow::serving::MultiInferenceRequest& tasks() const = 0;
  virtual const ExampleInput& input() const = 0;
  virtual Status Write(const tensorflow::serving::MultiInferenceResponse& response) = 0;
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_CODEC_H_
