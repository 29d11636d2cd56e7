// One call of Predict or ModelInfer.
#ifndef COLCAST_SERVER_API_PREDICT_CALL_H_
#define COLCAST_SERVER_API_PREDICT_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "server/api/call.h"
#include "server/inference/predict_run.h"

namespace colcast::api {

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
  // Also runs the request on a shadow version, if this call is drawn.
  void Shadow(const engine::Outputs& outputs);
  void GetMessages(Bytes* request, Bytes* response, std::string made[2]) override;

  const std::unique_ptr<PredictCodec> codec_;
  const engine::Outputs* outputs_ = nullptr;  // set during Finish()
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_PREDICT_CALL_H_
