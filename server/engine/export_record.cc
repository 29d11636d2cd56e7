#include "server/engine/export_record.h"

#include <rapidjson/document.h>
#include <rapidjson/istreamwrapper.h>

#include <fstream>
#include <initializer_list>

namespace colcast::engine {
namespace {

// The value below `value` at the end of a path of names; null if there is none.
const rapidjson::Value* Find(const rapidjson::Value* value,
                             std::initializer_list<const char*> path) {
  for (const char* name : path) {
    if (!value->IsObject()) return nullptr;
    const auto member = value->FindMember(name);
    if (member == value->MemberEnd()) return nullptr;
    value = &member->value;
  }
  return value;
}

}  // namespace

bool TakesManyUsersPerRun(const std::string& directory, const std::string& name) {
  std::ifstream file(directory + "/assets.extra/colcast.json");
  rapidjson::IStreamWrapper stream(file);
  rapidjson::Document record;
  record.ParseStream(stream);
  if (record.HasParseError()) return false;
  const rapidjson::Value* const users =
      Find(&record, {"signatures", name.c_str(), "parts", "users_per_run"});
  return users != nullptr && users->IsString() && std::string(users->GetString()) == "many";
}

}  // namespace colcast::engine
