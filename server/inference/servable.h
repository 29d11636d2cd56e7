// A loaded version of a model and its signatures, as all APIs and protocols see them.
#ifndef COLCAST_SERVER_INFERENCE_SERVABLE_H_
#define COLCAST_SERVER_INFERENCE_SERVABLE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/batching.h"
#include "server/inference/item_lookup.h"
#include "server/scheduling/request_queue.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::inference {

inline constexpr char kPredictMethodName[] = "tensorflow/serving/predict";
inline constexpr char kClassifyMethodName[] = "tensorflow/serving/classify";
inline constexpr char kRegressMethodName[] = "tensorflow/serving/regress";

class RunGate;

// Options of a call to a servable, for all APIs.
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

using SignatureMap = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

// The name of the requested signature; "serving_default" if the request names none.
std::string_view SignatureNameOf(std::string_view requested);

// Formats the map's keys for messages, sorted: {classes, scores}.
template <typename Map>
std::string KeyList(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  std::string list = "{";
  for (const std::string& key : keys) list += (list.size() > 1 ? ", " : "") + key;
  return list + "}";
}

// A signature of a servable.
struct Signature {
  std::string_view name;
  const tensorflow::SignatureDef* def = nullptr;
  int number = 0;  // its position among the model's signatures, sorted by name
  // Not const, because the class learns from requests.
  std::unique_ptr<scheduling::RequestClass> request_class;
};

// Shared by the requests that it answers. Only the learned cost estimates and counts change.
class Servable {
 public:
  // Returns INTERNAL if the model's signatures cannot be parsed.
  static Status Create(std::string name, int64_t version, std::unique_ptr<engine::Model> model,
                       std::shared_ptr<const Servable>* servable, const Batching& batching = {},
                       ItemSources items = {});

  const std::string& name() const { return name_; }
  int64_t version() const { return version_; }
  const engine::Model& model() const { return *model_; }
  const SignatureMap& signatures() const { return signatures_.signature_def(); }
  // The signature that a request names; an empty name means "serving_default". Null if the model
  // has no such signature; NoSignature() returns the error, which lists its signatures.
  const Signature* Find(std::string_view requested) const;
  Status NoSignature(std::string_view requested) const;

  const engine::BatchRules& batch_rules() const { return batch_rules_; }
  // The lookup of columns that requests leave out; null if the model has no item table.
  const ItemLookup* items() const { return items_.get(); }

  // Counts an answer of this version. May be called from any thread.
  void CountAnswer(StatusCode code) const {
    answered_[static_cast<size_t>(code)].fetch_add(1, std::memory_order_relaxed);
  }
  int64_t answered(StatusCode code) const { return answered_[static_cast<size_t>(code)]; }

 private:
  Servable() = default;

  std::string name_;
  int64_t version_ = 0;
  std::unique_ptr<engine::Model> model_;
  tensorflow::MetaGraphDef signatures_;  // contains only the signatures
  engine::BatchRules batch_rules_;
  std::unique_ptr<const ItemLookup> items_;
  std::map<std::string_view, Signature> by_name_;
  mutable std::array<std::atomic<int64_t>, kNumStatusCodes> answered_{};
};

// The number that stands for a signature in engine::Model::Plan(); -1 for null.
inline int NumberOf(const Signature* signature) {
  return signature == nullptr ? -1 : signature->number;
}

// The metrics label of a signature: its name, or "unknown" for null. Lives as long as the servable.
inline std::string_view LabelOf(const Signature* signature) {
  return signature == nullptr ? "unknown" : signature->name;
}

// Checks whether Predict may run the signature. If options.check_method_names is set, returns
// INTERNAL, as TensorFlow Serving does, unless the signature has one of its three method names.
// Returns OK for null, because planning the request reports a missing signature.
Status CheckMethodName(const Signature* signature, const CallOptions& options);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_SERVABLE_H_
