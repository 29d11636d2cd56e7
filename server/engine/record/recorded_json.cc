#include "server/engine/record/recorded_json.h"

#include <fstream>
#include <iterator>

namespace colcast::engine {

using rapidjson::Value;

bool ParseRecord(std::string_view json, rapidjson::Document* document) {
  constexpr unsigned kFlags = rapidjson::kParseFullPrecisionFlag | rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNanAndInfFlag;
  document->Parse<kFlags>(json.data(), json.size());
  return !document->HasParseError();
}

bool ReadRecordFile(const std::string& directory, std::string* text) {
  std::ifstream in(directory + "/assets.extra/colcast.json", std::ios::binary);
  if (!in) return false;
  text->assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

std::string_view Text(const Value& string) {
  return {string.GetString(), string.GetStringLength()};
}

const Value* Member(const Value& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

bool ReadText(const Value& object, const char* name, std::string* text) {
  const Value* const member = Member(object, name);
  if (member == nullptr || !member->IsString()) return false;
  *text = std::string(Text(*member));
  return true;
}

bool ReadKind(const Value& feature, FeatureKind* kind) {
  std::string name;
  if (!ReadText(feature, "kind", &name)) return false;
  if (name == "fixed_len") {
    *kind = FeatureKind::kFixedLen;
  } else if (name == "var_len") {
    *kind = FeatureKind::kVarLen;
  } else if (name == "fixed_len_sequence") {
    *kind = FeatureKind::kFixedLenSequence;
  } else if (name == "ragged") {
    *kind = FeatureKind::kRagged;
  } else {
    return false;
  }
  return true;
}

}  // namespace colcast::engine
