#include "server/http/json_document.h"

#include <absl/strings/escaping.h>
#include <rapidjson/error/en.h>

#include "server/http/json_text.h"
#include "server/wire/describe.h"
#include "server/wire/utf8.h"

namespace colcast::http {
namespace {

constexpr unsigned kParseFlags = rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseFullPrecisionFlag |
                                 rapidjson::kParseNanAndInfFlag;
constexpr char kBase64[] = "b64";

std::string NumberText(const rapidjson::Value& value) {
  if (value.IsUint64()) return std::to_string(value.GetUint64());
  if (value.IsInt64()) return std::to_string(value.GetInt64());
  std::string text;
  AppendDecimal(value.GetDouble(), &text);
  return text;
}

}  // namespace

Status ParseObject(std::string* text, rapidjson::Document* document) {
  if (text->empty()) return InvalidArgument("JSON Parse error: The document is empty");
  // Parsing in place ends at the first NUL, so one inside would hide what follows it.
  if (const size_t nul = text->find('\0'); nul != std::string::npos) {
    return InvalidArgument("JSON Parse error: Invalid value. at offset: ", nul);
  }
  document->ParseInsitu<kParseFlags>(text->data());
  if (document->HasParseError()) {
    return InvalidArgument(
        "JSON Parse error: ", rapidjson::GetParseError_En(document->GetParseError()),
        " at offset: ", document->GetErrorOffset());
  }
  if (document->IsObject()) return OkStatus();
  return InvalidArgument("the body is ", Describe(*document), ", expected a JSON object");
}

std::string_view Text(const rapidjson::Value& string) {
  return {string.GetString(), string.GetStringLength()};
}

const rapidjson::Value* FindMember(const rapidjson::Value& object, std::string_view name) {
  for (const auto& member : object.GetObject()) {
    if (Text(member.name) == name) return &member.value;
  }
  return nullptr;
}

std::string Describe(const rapidjson::Value& value) {
  switch (value.GetType()) {
    case rapidjson::kNullType:
      return "null";
    case rapidjson::kFalseType:
      return "false";
    case rapidjson::kTrueType:
      return "true";
    case rapidjson::kObjectType:
      return "an object of " + std::to_string(value.MemberCount());
    case rapidjson::kArrayType:
      return "a list of " + std::to_string(value.Size());
    case rapidjson::kStringType:
      return IsValidUtf8(Text(value)) ? "the string " + Quoted(Text(value))
                                      : "a string that is not UTF-8";
    case rapidjson::kNumberType:
      return "the number " + NumberText(value);
  }
  return "";
}

bool IsBase64(const rapidjson::Value& value) {
  if (!value.IsObject() || value.MemberCount() != 1) return false;
  const auto& member = *value.MemberBegin();
  return Text(member.name) == kBase64 && member.value.IsString();
}

bool DecodeBase64(const rapidjson::Value& value, std::string* bytes) {
  const std::string_view text = Text(value.MemberBegin()->value);
  return absl::Base64Unescape({text.data(), text.size()}, bytes);
}

}  // namespace colcast::http
