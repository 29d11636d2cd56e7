#include "server/items/model_features.h"

#include "server/base/file.h"
#include "server/wire/data_type.h"
#include "server/wire/feature_json.h"

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

ModelFeatures ReadModelFeatures(std::string_view json) {
  ModelFeatures features;
  rapidjson::Document document;
  if (!ParseJson(json, &document)) return features;
  const rapidjson::Value* const signatures = Member(document, "signatures");
  if (signatures == nullptr || !signatures->IsObject()) return features;
  for (const auto& signature : signatures->GetObject()) {
    const rapidjson::Value* const recorded = Member(signature.value, "features");
    if (recorded == nullptr || !recorded->IsObject()) continue;
    for (const auto& member : recorded->GetObject()) {
      ExampleFeature feature;
      feature.name = std::string(Text(member.name));
      std::string domain;
      if (!ReadText(member.value, "side", &domain) || !ReadFeature(member.value, &feature))
        continue;
      features[domain].emplace(feature.name, feature);
    }
  }
  return features;
}

ModelFeatures ReadModelFeaturesOf(const std::string& directory) {
  std::string record;
  return ReadFile(directory + "/assets.extra/colcast.json", &record).ok()
             ? ReadModelFeatures(record)
             : ModelFeatures();
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
