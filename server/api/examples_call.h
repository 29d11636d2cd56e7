// One call of Classify, Regress or MultiInference.
#ifndef COLCAST_SERVER_API_EXAMPLES_CALL_H_
#define COLCAST_SERVER_API_EXAMPLES_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "server/api/call.h"
#include "server/inference/run_gate.h"

namespace colcast::api {

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

#endif  // COLCAST_SERVER_API_EXAMPLES_CALL_H_
