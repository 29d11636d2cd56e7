#include "server/request_log/prediction_log.h"

#include <gtest/gtest.h>

#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::request_log {
namespace {

using tensorflow::serving::PredictionLog;

PredictionLog Logged(const LoggedCall& call) {
  PredictionLog log;
  EXPECT_TRUE(log.ParseFromString(MakePredictionLog(call, 0.5, 1'700'000'000)));
  return log;
}

TEST(PredictionLogTest, SaysWhoAnsweredAndWhen) {
  const PredictionLog log = Logged({"Predict", "movies", 7, "columnar", {}, {}});
  EXPECT_EQ(log.log_metadata().model_spec().name(), "movies");
  EXPECT_EQ(log.log_metadata().model_spec().version().value(), 7);
  EXPECT_EQ(log.log_metadata().model_spec().signature_name(), "columnar");
  EXPECT_EQ(log.log_metadata().sampling_config().sampling_rate(), 0.5);
  EXPECT_EQ(log.log_metadata().timestamp_secs(), 1'700'000'000);
}

TEST(PredictionLogTest, HoldsRequestAndResponseOfEachApi) {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(std::string(300, 'm'));
  tensorflow::serving::PredictResponse response;
  response.mutable_model_spec()->set_signature_name("answered");
  const std::string sent = request.SerializeAsString(), answered = response.SerializeAsString();
  // In pieces, as gRPC has them.
  const Slice slices[] = {{reinterpret_cast<const uint8_t*>(sent.data()), 5},
                          {reinterpret_cast<const uint8_t*>(sent.data()) + 5, sent.size() - 5}};
  const PredictionLog log = Logged({"Predict", "m", 1, "s", Bytes(slices, 2), Bytes(answered)});
  EXPECT_EQ(log.predict_log().request().SerializeAsString(), sent);
  EXPECT_EQ(log.predict_log().response().SerializeAsString(), answered);
  EXPECT_TRUE(Logged({"Classify", "m", 1, "s", {}, {}}).has_classify_log());
  EXPECT_TRUE(Logged({"Regress", "m", 1, "s", {}, {}}).has_regress_log());
  EXPECT_TRUE(Logged({"MultiInference", "m", 1, "s", {}, {}}).has_multi_inference_log());
}

}  // namespace
}  // namespace colcast::request_log
