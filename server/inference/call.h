// What every way to ask a servable has in common.
#ifndef COLCAST_SERVER_INFERENCE_CALL_H_
#define COLCAST_SERVER_INFERENCE_CALL_H_

#include <cstdint>

namespace colcast::inference {

inline constexpr char kPredictMethodName[] = "tensorflow/serving/predict";
inline constexpr char kClassifyMethodName[] = "tensorflow/serving/classify";
inline constexpr char kRegressMethodName[] = "tensorflow/serving/regress";

class RunGate;

struct CallOptions {
  // Whether a signature must say for which API it was made: --enable_signature_method_name_check.
  bool check_method_names = false;
  // As in engine::Options, for tf.Examples before they get there.
  int64_t max_request_rows = 1 << 20;
  int64_t max_expanded_bytes = int64_t{1} << 30;
  // The call's own; null where nothing else runs.
  RunGate* gate = nullptr;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_CALL_H_
