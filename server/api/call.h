// The life of a call from receipt to answer, independent of protocol and API.
#ifndef COLCAST_SERVER_API_CALL_H_
#define COLCAST_SERVER_API_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/api/codec.h"
#include "server/backend.h"
#include "server/base/status.h"
#include "server/callers/callers.h"
#include "server/inference/predict_run.h"
#include "server/inference/run_gate.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/job.h"
#include "server/tracing/tracer.h"

namespace colcast::api {

// Owns itself until it is answered: Answer(), and therefore Run() and Drop(), destroys it.
class Call : public scheduling::Job {
 public:
  scheduling::Clock::time_point deadline() const final { return exchange_.deadline(); }
  bool cancelled() const final { return exchange_.cancelled(); }
  // A number for the caller if it has a name, else for its connection or host.
  uint64_t client() const final;
  void Drop(scheduling::DropReason reason) final { Answer(DropStatus(reason)); }

  // Queues the call for a worker.
  void Submit() { backend_.workers->Submit(this); }

  // Called by the codec's Read(): finds the servable for `spec` and records its name and version.
  Status FindServable(const ModelSpec& spec);
  // For codecs that learn the signature's name after the model's.
  void SetSignature(const std::string& name);
  bool has_servable() const { return servable_ != nullptr; }
  const inference::Servable& found() const { return *servable_; }

  // Sends what the codec has written, or the error. Destroys the call.
  void Answer(Status status);

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
  Exchange& exchange_;
  const Backend& backend_;
  std::shared_ptr<const inference::Servable> servable_;  // owns the names that the record refers to
  metrics::CallRecord record_;
  std::unique_ptr<tracing::RequestTrace> trace_;
  uint64_t caller_ = 0;  // callers::ClientOf() the caller's name
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

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_CALL_H_
