// One call of Predict, or of what another protocol has for it, from the bytes gRPC received to the
// bytes it sends.
#ifndef COLCAST_SERVER_RPC_PREDICT_CALL_H_
#define COLCAST_SERVER_RPC_PREDICT_CALL_H_

#include <memory>
#include <vector>

#include "server/inference/predict_run.h"
#include "server/rpc/worker_call.h"

namespace colcast::rpc {

// How a protocol has the request and the answer.
struct PredictCodec {
  const char* api;  // for the metrics
  Status (*decode)(const Bytes& message, DecodedRequest* request, size_t max_columns);
  // The same, perhaps without values, for a profile alone.
  Status (*decode_sizes)(const Bytes& message, DecodedRequest* request, size_t max_columns);
  Status (*check)(const PredictResponse& response);
  size_t (*size)(const PredictResponse& response);
  void (*write)(const PredictResponse& response, uint8_t* out);
};

extern const PredictCodec kPredictCodec;  // TensorFlow Serving's
extern const PredictCodec kInferCodec;    // the Open Inference Protocol's

class PredictCall final : public WorkerCall, public inference::PredictMember {
 public:
  PredictCall(const PredictCodec& codec, Call* call, const Backend& backend);
  ~PredictCall() override;

  // Decodes the request before it waits, to know its rows, signature and
  // outputs: a few microseconds. One that cannot be decoded, or is so large that decoding may take
  // milliseconds, stays unknown: the worker that takes it says what is wrong with it.
  void Describe(scheduling::JobProfile* profile) override;
  void Run(scheduling::Clock::duration waited, std::vector<scheduling::Taken>* companions) override;

  // PredictMember
  scheduling::Job* job() override { return this; }
  engine::RunObserver* observer() const override { return trace(); }
  Status Read() override;
  const DecodedRequest& request() const override;
  DecodedRequest* mutable_request() override;
  const inference::Servable& servable() const override { return WorkerCall::servable(); }
  void Finish(const Status& status, const engine::Outputs* outputs,
              const inference::PredictStats& stats) override;

 private:
  struct Scratch;
  class Spare;

  Status Decode(decltype(PredictCodec::decode) decode);
  // Throws std::bad_alloc if there is no memory for a large answer.
  Status Respond(const engine::Outputs& outputs);
  PredictResponse ResponseOf(const engine::Outputs& outputs) const;
  // Has a shadow version run the request, too, if it is drawn.
  void Shadow(const engine::Outputs& outputs) const;
  void Log(const std::shared_ptr<request_log::RequestLogs::Model>& log) const override;
  bool CameAsPredict() const { return &codec_ == &kPredictCodec; }
  void DescribeInflated(scheduling::JobProfile* profile);
  void GiveBack();

  const PredictCodec& codec_;
  std::unique_ptr<Scratch> scratch_;          // null until it is decoded
  const engine::Outputs* outputs_ = nullptr;  // while it finishes
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICT_CALL_H_
