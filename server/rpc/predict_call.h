// One call of Predict, from the bytes gRPC received to the bytes it sends.
#ifndef COLCAST_SERVER_RPC_PREDICT_CALL_H_
#define COLCAST_SERVER_RPC_PREDICT_CALL_H_

#include <memory>
#include <vector>

#include "server/inference/predict_run.h"
#include "server/rpc/worker_call.h"

namespace colcast::rpc {

class PredictCall final : public WorkerCall, public inference::PredictMember {
 public:
  PredictCall(Call* call, const Backend& backend);
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
  Status Admit(int64_t rows) override { return AdmitRows(rows); }
  const DecodedRequest& request() const override;
  DecodedRequest* mutable_request() override;
  const inference::Servable& servable() const override { return WorkerCall::servable(); }
  void Finish(const Status& status, const engine::Outputs* outputs,
              const inference::PredictStats& stats) override;

 private:
  struct Scratch;
  class Spare;

  Status Decode();
  // Throws std::bad_alloc if there is no memory for a large answer.
  Status Respond(const engine::Outputs& outputs);
  // Has a shadow version run the request, too, if it is drawn.
  void Shadow(const engine::Outputs& outputs) const;
  void DescribeInflated(scheduling::JobProfile* profile);
  void GiveBack();

  std::unique_ptr<Scratch> scratch_;  // null until it is decoded
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICT_CALL_H_
