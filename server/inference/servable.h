// One loaded version of a model as the APIs see it, whatever protocol they speak.
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
#include "server/inference/state_filler.h"
#include "server/scheduling/request_class.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::inference {

using SignatureMap = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

// Immutable but for what it learns of its requests' costs; shared by the requests it answers.
class Servable {
 public:
  // INTERNAL if the model's signatures do not parse.
  static Status Create(std::string name, int64_t version, std::unique_ptr<engine::Model> model,
                       std::shared_ptr<const Servable>* servable, const Batching& batching = {},
                       ItemSources items = {});

  const std::string& name() const { return name_; }
  int64_t version() const { return version_; }
  const engine::Model& model() const { return *model_; }
  const SignatureMap& signatures() const { return signatures_.signature_def(); }
  // How the metrics call the signature a request names: as the model does, "serving_default" for
  // an empty name, "unknown" if the model has none of that name. Lives as long as the servable.
  std::string_view SignatureLabel(std::string_view requested) const;

  const engine::BatchRules& batch_rules() const { return batch_rules_; }
  // What finds the columns that requests leave out; null if the model has no item table.
  const ItemLookup* items() const { return items_.get(); }
  // Of the signature a request names, as above; null if the model has none of that name. It learns
  // from requests, whatever else is immutable.
  scheduling::RequestClass* request_class(std::string_view requested) const;
  // Of RequestProfile::signature.
  scheduling::RequestClass* request_class(int signature) const { return by_number_[signature]; }

 private:
  Servable() = default;

  std::string name_;
  int64_t version_ = 0;
  std::unique_ptr<engine::Model> model_;
  tensorflow::MetaGraphDef signatures_;  // nothing but the signatures
  engine::BatchRules batch_rules_;
  std::unique_ptr<const ItemLookup> items_;
  std::map<std::string, std::unique_ptr<scheduling::RequestClass>, std::less<>> classes_;
  std::vector<scheduling::RequestClass*> by_number_;
  std::unique_ptr<StateFiller> filler_;  // the first to go: its thread uses the model
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_SERVABLE_H_
