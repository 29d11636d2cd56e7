// Options of a call to a servable, common to all APIs.
#ifndef COLCAST_SERVER_INFERENCE_CALL_H_
#define COLCAST_SERVER_INFERENCE_CALL_H_

#include <cstdint>

namespace colcast::inference {

inline constexpr char kPredictMethodName[] = "tensorflow/serving/predict";
inline constexpr char kClassifyMethodName[] = "tensorflow/serving/classify";
inline constexpr char kRegressMethodName[] = "tensorflow/serving/regress";

class RunGate;

struct CallOptions {
  // Whether to check that a signature was made for the called API:
  // --enable_signature_method_name_check.
  bool check_method_names = false;
  // The limits of engine::Options, applied to tf.Examples before they reach the engine.
  int64_t max_request_rows = 1 << 20;
  int64_t max_expanded_bytes = int64_t{1} << 30;
  // Admission to the worker pool's resources; null where no other run competes, as in warm-up.
  RunGate* gate = nullptr;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_CALL_H_
