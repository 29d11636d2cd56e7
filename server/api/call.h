// The life of a call from receipt to answer, independent of protocol and API.
#ifndef COLCAST_SERVER_API_CALL_H_
#define COLCAST_SERVER_API_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/inference/run.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/request_queue.h"
#include "server/tracing/tracer.h"
#include "server/wire/bytes.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::api {

// What the transport knows about a call when it begins.
struct Origin {
  const char* api = "";         // for the metrics, for example "Predict"
  const char* entrypoint = "";  // for the metrics: "GRPC" or "REST"
  scheduling::Clock::time_point deadline = scheduling::Clock::time_point::max();
  // Whether the server set the deadline. If so, the time for reading a long body does not count.
  bool is_deadline_ours = false;
  // Clients take turns in the queue. This number identifies the client: scheduling::ClientOf() of
  // the caller's name or, without a name, a number for the connection or host.
  uint64_t client = 0;
  std::string traceparent;  // empty if the client sent none
};

class Call;
class PredictCall;

// A call's transport and wire format. Decodes the request; encodes and sends the answer.
class Codec {
 public:
  explicit Codec(Origin origin) : origin_(std::move(origin)) {}
  virtual ~Codec() = default;

  Origin& origin() { return origin_; }
  const Origin& origin() const { return origin_; }

  // The transport.
  virtual bool cancelled() const = 0;  // whether the client has hung up
  // Returns RESOURCE_EXHAUSTED if the client's host already has too many unread answers. `since` is
  // when the call was received.
  virtual Status CheckClientReads(scheduling::Clock::time_point since) const = 0;
  // Decides whether to send the answer or the error. If the answer cannot be sent, sets
  // *status to the error. Records the sizes of request and answer.
  virtual void Settle(metrics::CallRecord* record, Status* status) = 0;
  // Sends what Settle() decided. Called once.
  virtual void Send(const Status& status) = 0;

  // The body as received, for ReadAndRun().
  virtual size_t body_bytes() const = 0;
  virtual bool is_compressed() const = 0;
  // Reads the body, decompressed to at most `max_bytes`. If it fails because the decompressed body
  // is longer, sets *inflates_too_far.
  virtual Status ReadBody(Call* call, size_t max_bytes, bool* inflates_too_far) = 0;

  // Reads the request and calls FindServable(), unless both have been done. Called on a worker.
  virtual Status Read(Call* call) = 0;

  // Sets the request and response of an answered call as TensorFlow Serving's gRPC messages, whose
  // bytes live as long as the codec. Returns false if the codec has no such messages.
  virtual bool messages(Bytes* /*request*/, Bytes* /*response*/) { return false; }

 private:
  Origin origin_;
};

// For APIs with columns in request and answer: Predict, ModelInfer.
class PredictCodec : public Codec {
 public:
  using Codec::Codec;
  // See Job::Describe(). May read the request.
  virtual void Describe(PredictCall* call, scheduling::JobProfile* profile) = 0;
  virtual DecodedRequest& request() = 0;
  // Fails if the format cannot represent an output, or if the answer is too large.
  virtual Status Write(const PredictResponse& response) = 0;
};

// For APIs that answer tf.Examples with classes or numbers: Classify, Regress, MultiInference.
class ExamplesCodec : public Codec {
 public:
  using Codec::Codec;
  virtual const tensorflow::serving::MultiInferenceRequest& tasks() const = 0;
  virtual const ExampleInput& input() const = 0;
  virtual Status Write(const tensorflow::serving::MultiInferenceResponse& response) = 0;
};

// Owns itself until it is answered: Answer() destroys it, and so do Run() and Drop().
class Call : public scheduling::Job {
 public:
  scheduling::Clock::time_point deadline() const final { return codec_.origin().deadline; }
  bool cancelled() const final { return codec_.cancelled(); }
  uint64_t client() const final { return codec_.origin().client; }
  void Drop(scheduling::DropReason reason) final { Answer(DropStatus(reason)); }

  // Queues the call for a worker.
  void Submit() { backend_.workers->Submit(this); }

  // Called by the codec, in this order: FindServable() finds the servable of `spec`, whatever its
  // signature; FindSignature() finds the servable's signature. Both record the names they find.
  Status FindServable(const ModelSpec& spec);
  const inference::Signature* FindSignature(const std::string& name);
  bool has_servable() const { return servable_ != nullptr; }
  const inference::Servable& found() const { return *servable_; }
  // Null if the model lacks the requested signature, or if FindSignature() was not called.
  const inference::Signature* found_signature() const { return signature_; }

  // Sends what the codec has written, or the error. Destroys the call.
  void Answer(Status status);

  Codec& codec() { return codec_; }
  const Backend& backend() const { return backend_; }
  metrics::CallRecord& call_record() { return record_; }

 protected:
  // `backend` must outlive every call.
  Call(Codec* codec, const Backend& backend);

  tracing::RequestTrace* trace() const { return trace_.get(); }  // null if the call is not sampled

  // For the request log: sets the request and response of an answered call as gRPC messages. If the
  // codec has none, converts both and stores them in `made`.
  virtual void GetMessages(Bytes* request, Bytes* response, std::string made[2]) = 0;

  // Reads the request with the codec, unless the client leaves its answers unread.
  Status ReadRequest();

 private:
  void LogIfSampled();

  Codec& codec_;
  const Backend& backend_;
  std::shared_ptr<const inference::Servable> servable_;  // owns the names that the record refers to
  const inference::Signature* signature_ = nullptr;
  metrics::CallRecord record_;
  std::unique_ptr<tracing::RequestTrace> trace_;
};

// One call of Predict or ModelInfer.
class PredictCall final : public Call, public inference::PredictMember {
 public:
  PredictCall(std::unique_ptr<PredictCodec> codec, const Backend& backend)
      : Call(codec.get(), backend), codec_(std::move(codec)) {}

  void Describe(scheduling::JobProfile* profile) override { codec_->Describe(this, profile); }
  void Run(scheduling::Clock::duration waited, std::vector<scheduling::Taken>* companions) override;

  // PredictMember
  scheduling::Job* job() override { return this; }
  metrics::CallRecord* record() override { return &call_record(); }
  engine::RunObserver* observer() const override { return trace(); }
  Status Read() override { return ReadRequest(); }
  DecodedRequest& request() override { return codec_->request(); }
  const inference::Servable& servable() const override { return found(); }
  const inference::Signature* signature() const override { return found_signature(); }
  void Finish(const Status& status, const engine::Outputs* outputs) override;

 private:
  PredictResponse ResponseOf(const engine::Outputs& outputs) const;
  void GetMessages(Bytes* request, Bytes* response, std::string made[2]) override;

  const std::unique_ptr<PredictCodec> codec_;
  const engine::Outputs* outputs_ = nullptr;  // set during Finish()
};

// One call of Classify, Regress or MultiInference.
class ExamplesCall final : public Call {
 public:
  ExamplesCall(std::unique_ptr<ExamplesCodec> codec, const Backend& backend)
      : Call(codec.get(), backend), codec_(std::move(codec)) {}

  // Reads the message on the worker. Only the model parses the tf.Examples, because parsing them
  // takes longer than many models need to run.
  void Run(scheduling::Clock::duration waited, std::vector<scheduling::Taken>*) override;

 private:
  Status RunModel(inference::RunGate* gate);
  void GetMessages(Bytes* request, Bytes* response, std::string made[2]) override;

  const std::unique_ptr<ExamplesCodec> codec_;
  tensorflow::serving::MultiInferenceResponse response_;
};

// Reads the call's body before it runs (body_job.cc). A worker reads a short body and then runs the
// call. A body that is long, or turns out to be long when it is decompressed, is read by one of
// backend.readers, and the call then waits for a worker.
void ReadAndRun(size_t max_bytes, Call* call);

// Options for the threads that read long bodies. There are half as many as cores, because reading
// needs much memory bandwidth. Their lower priority keeps other requests from waiting for them.
scheduling::WorkerPool::Options ReaderOptions();

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_CALL_H_
