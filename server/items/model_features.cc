#include "server/items/model_features.h"

#include "server/wire/data_type.h"

namespace colcast::items {
namespace {

// The first property in which the features differ; empty if they are equal.
std::string_view Difference(const ExampleFeature& a, const ExampleFeature& b) {
  if (a.kind != b.kind) return "kind";
  if (a.dtype != b.dtype) return "dtype";
  if (a.shape != b.shape) return "shape";
  return a.required == b.required && a.default_values == b.default_values ? "" : "default";
}

}  // namespace

ModelFeatures ReadModelFeatures(const rapidjson::Document& record) {
  ModelFeatures features;
  ForEachMember(record, "signatures", [&](const auto&, const rapidjson::Value& signature) {
    ForEachMember(signature, "features", [&](const auto& name, const rapidjson::Value& recorded) {
      ExampleFeature feature;
      feature.name = name;
      std::string domain;
      if (ReadText(recorded, "side", &domain) && ReadFeature(recorded, &feature)) {
        features[domain].emplace(name, feature);
      }
    });
  });
  return features;
}

Status CheckFeatures(const ModelFeatures& model, const std::string& domain,
                     const ExampleFeatures& table) {
  const auto of_domain = model.find(domain);
  if (of_domain == model.end()) {
    return FailedPrecondition("the model's export recorded no feature of the domain \"",
                              Readable(domain), "\" (assets.extra/colcast.json)");
  }
  for (const auto& [name, feature] : of_domain->second) {
    const size_t place = table.Find(name);
    if (place == table.size()) {
      return FailedPrecondition("the table has no feature ", Quoted(name),
                                ", which the model reads");
    }
    const std::string_view difference = Difference(feature, table[place].feature);
    if (!difference.empty()) {
      return FailedPrecondition("feature ", Quoted(name), " has a different ", difference,
                                " in the table than in the model");
    }
  }
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string& name = table[i].feature.name;
    if (of_domain->second.count(name) == 0) {
      return FailedPrecondition("the table has a feature ", Quoted(name),
                                ", which the model does not read");
    }
  }
  return OkStatus();
}

}  // namespace colcast::items
