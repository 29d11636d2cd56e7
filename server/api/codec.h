// The two sides of a call: its transport (Exchange) and the format of its bytes (Codec).
#ifndef COLCAST_SERVER_API_CODEC_H_
#define COLCAST_SERVER_API_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/base/status.h"
#include "server/callers/callers.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/job.h"
#include "server/wire/bytes.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::api {

// The transport's side of a call, gRPC or REST: knows the request's properties and sends the
// answer.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const char* entrypoint() const = 0;  // for the metrics: "GRPC" or "REST"
  virtual scheduling::Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;     // whether the client has hung up
  virtual uint64_t client() const = 0;    // equal for all calls of a connection or host
  virtual std::string traceparent() = 0;  // empty if the client sent none
  // The caller's name; empty if it has none.
  virtual std::string caller(const callers::NameSource& names) = 0;
  // Returns RESOURCE_EXHAUSTED if the client's host already has too many unread answers. `since` is
  // when the call was received.
  virtual Status CheckClientReads(scheduling::Clock::time_point since) const = 0;

  // Decides whether to send the codec's answer or the error. If the answer cannot be sent, sets
  // *status to the error. Records the sizes of request and answer.
  virtual void Settle(metrics::CallRecord* record, Status* status) = 0;
  // Sends what Settle() decided. Called once.
  virtual void Send(const Status& status) = 0;
};

class Call;
class PredictCall;

// Decodes a call's request and encodes its answer in one format. Holds the exchange that received
// the request and sends the answer.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual const char* api() const = 0;  // for the metrics, for example "Predict"
  virtual Exchange& exchange() = 0;

  // Reads the request and makes `call` find its servable, unless both have been done. Called on a
  // worker.
  virtual Status Read(Call* call) = 0;

  // For an answered call: sets the request and response as TensorFlow Serving's gRPC messages,
  // whose bytes live as long as the codec. Returns false if the codec has no such messages.
  virtual bool messages(Bytes* /*request*/, Bytes* /*response*/) { return false; }
};

// For APIs with columns in request and answer: Predict, ModelInfer.
class PredictCodec : public Codec {
 public:
  // See Job::Describe(). May read the request.
  virtual void Describe(PredictCall* call, scheduling::JobProfile* profile) = 0;
  virtual DecodedRequest& request() = 0;
  // Fails if the format cannot represent an output, or if the answer is too large.
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
