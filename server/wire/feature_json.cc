#include "server/wire/feature_json.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "server/base/file.h"
#include "server/base/text.h"
#include "server/wire/data_type.h"

namespace colcast {
namespace {

using rapidjson::Value;

bool ReadDtype(const Value& feature, DataType* dtype) {
  std::string name;
  if (!ReadText(feature, "dtype", &name)) return false;
  *dtype = RecordedDataType(name);
  return *dtype != DT_INVALID;
}

bool ReadShape(const Value& feature, std::vector<int64_t>* shape) {
  const Value* const sizes = Member(feature, "shape");
  if (sizes == nullptr || !sizes->IsArray()) return false;
  for (const Value& size : sizes->GetArray()) {
    if (!size.IsInt64()) return false;
    shape->push_back(size.GetInt64());
  }
  return true;
}

template <typename Number>
void AppendNumber(Number number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// A string is written as text or, if it is not valid UTF-8, as {"hex": "..."}.
bool AppendString(const Value& value, std::string* out) {
  std::string hex, bytes;
  if (value.IsString()) {
    *out += StringRecord(Text(value));
  } else if (ReadText(value, "hex", &hex) && ReadHex(hex, &bytes)) {
    *out += StringRecord(bytes);
  } else {
    return false;
  }
  return true;
}

template <typename Number>
bool AppendInteger(const Value& value, std::string* out) {
  if (std::is_signed_v<Number> ? !value.IsInt64() : !value.IsUint64()) return false;
  const auto number = static_cast<Number>(value.IsInt64() ? value.GetInt64() : value.GetUint64());
  AppendNumber(number, out);
  return true;
}

template <typename Number>
bool AppendReal(const Value& value, std::string* out) {
  // Refuses NaN, because JSON does not tell which of the many NaNs it was.
  if (!value.IsNumber() || std::isnan(value.GetDouble())) return false;
  AppendNumber(static_cast<Number>(value.GetDouble()), out);
  return true;
}

bool AppendDefault(const Value& value, DataType dtype, std::string* out) {
  if (dtype == DT_STRING) return AppendString(value, out);
  if (dtype == DT_BOOL) {
    if (value.IsBool()) out->push_back(value.GetBool() ? 1 : 0);
    return value.IsBool();
  }
  // Fails for the dtypes that VisitNumber() does not visit: no export writes their defaults.
  bool appended = false;
  VisitNumber(dtype, [&](auto type) {
    using Number = decltype(type);
    if constexpr (std::is_floating_point_v<Number>) {
      appended = AppendReal<Number>(value, out);
    } else {
      appended = AppendInteger<Number>(value, out);
    }
  });
  return appended;
}

bool ReadDefaults(const Value& recorded, ExampleFeature* feature) {
  const Value* const values = Member(recorded, "default");
  if (values == nullptr) return false;
  feature->required = feature->kind == FeatureKind::kFixedLen && values->IsNull();
  if (values->IsNull()) return true;
  if (!values->IsArray()) return false;
  for (const Value& value : values->GetArray()) {
    if (!AppendDefault(value, feature->dtype, &feature->default_values)) return false;
  }
  return true;
}

// Parses numbers itself, because RapidJSON 1.1.0 misreads 0e-30 in full-precision mode.
class ExactDocument : public rapidjson::Document {
 public:
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const char* const end = text + size;
    const auto is = [text, end](auto* number) {
      const auto [stopped, error] = std::from_chars(text, end, *number);
      return error == std::errc() && stopped == end;
    };
    int64_t integer = 0;
    if (is(&integer)) return Int64(integer);
    uint64_t large = 0;
    if (is(&large)) return Uint64(large);
    double real = 0;
    return is(&real) && Double(real);
  }

  // Returns false if the text is not JSON.
  bool Read(std::string_view json) {
    constexpr unsigned kFlags = rapidjson::kParseNumbersAsStringsFlag |
                                rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
    bool is_json = false;
    const auto parse = [&](rapidjson::Document&) {
      rapidjson::MemoryStream stream(json.data(), json.size());
      is_json = !rapidjson::Reader().Parse<kFlags>(stream, *this).IsError();
      return is_json;
    };
    Populate(parse);
    return is_json;
  }
};

}  // namespace

bool ParseJson(std::string_view json, rapidjson::Document* document) {
  ExactDocument read;
  const bool is_json = read.Read(json);
  document->Swap(read);
  return is_json;
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

Status ReadExportRecord(const std::string& directory, rapidjson::Document* record) {
  constexpr char kRecord[] = "/assets.extra/colcast.json";
  std::string text;
  Status status = ReadFile(directory + kRecord, &text);
  if (!status.ok() || ParseJson(text, record)) return status;
  return Unavailable(directory, kRecord, " is not JSON: the version is still being copied");
}

bool ReadKind(const Value& feature, FeatureKind* kind) {
  // Indexed by FeatureKind.
  constexpr std::array<std::string_view, 4> kNames = {"fixed_len", "var_len", "fixed_len_sequence",
                                                      "ragged"};
  std::string name;
  if (!ReadText(feature, "kind", &name)) return false;
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  *kind = static_cast<FeatureKind>(found - kNames.begin());
  return found != kNames.end();
}

bool ReadFeature(const Value& recorded, ExampleFeature* feature) {
  return ReadKind(recorded, &feature->kind) && ReadDtype(recorded, &feature->dtype) &&
         ReadShape(recorded, &feature->shape) && ReadDefaults(recorded, feature);
}

}  // namespace colcast
