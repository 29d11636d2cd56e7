// Options of a call to a servable, for all APIs.
#ifndef COLCAST_SERVER_INFERENCE_CALL_OPTIONS_H_
#define COLCAST_SERVER_INFERENCE_CALL_OPTIONS_H_

#include <cstdint>

namespace colcast::inference {

inline constexpr char kPredictMethodName[] = "tensorflow/serving/predict";
inline constexpr char kClassifyMethodName[] = "tensorflow/serving/classify";
inline constexpr char kRegressMethodName[] = "tensorflow/serving/regress";

class RunGate;

struct CallOptions {
  // --enable_signature_method_name_check: whether a signature may be called only through the API
  // for which it was made.
  bool check_method_names = false;
  // Limits from engine::Options, applied to tf.Examples before they reach the engine.
  int64_t max_request_rows = 1 << 20;
  int64_t max_expanded_bytes = int64_t{1} << 30;
  // Admits runs to the worker pool's resources; null if no other runs compete, as in warm-up.
  RunGate* gate = nullptr;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_CALL_OPTIONS_H_
