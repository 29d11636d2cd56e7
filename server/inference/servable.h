// A loaded version of a model, as all APIs and protocols see it.
#ifndef COLCAST_SERVER_INFERENCE_SERVABLE_H_
#define COLCAST_SERVER_INFERENCE_SERVABLE_H_

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
#include "server/scheduling/request_class.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::inference {

using SignatureMap = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

// Shared by the requests that it answers. Only the learned cost estimates change.
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
  // The metrics label for the signature that a request names: its name, "serving_default" for an
  // empty name, or "unknown" if there is no such signature. Lives as long as the servable.
  std::string_view SignatureLabel(std::string_view requested) const;

  const engine::BatchRules& batch_rules() const { return batch_rules_; }
  // The lookup of columns that requests leave out; null if the model has no item table.
  const ItemLookup* items() const { return items_.get(); }
  // The class of the signature that a request names; an empty name means "serving_default". Null if
  // there is no such signature. Not const, because the class learns from requests.
  scheduling::RequestClass* request_class(std::string_view requested) const;
  // The class of the signature with this index (RequestProfile::signature).
  scheduling::RequestClass* request_class(int signature) const { return by_number_[signature]; }

 private:
  Servable() = default;

  std::string name_;
  int64_t version_ = 0;
  std::unique_ptr<engine::Model> model_;
  tensorflow::MetaGraphDef signatures_;  // contains only the signatures
  engine::BatchRules batch_rules_;
  std::unique_ptr<const ItemLookup> items_;
  std::map<std::string, std::unique_ptr<scheduling::RequestClass>, std::less<>> classes_;
  std::vector<scheduling::RequestClass*> by_number_;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_SERVABLE_H_
