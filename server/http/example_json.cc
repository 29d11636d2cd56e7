#include "server/http/example_json.h"

#include <cmath>
#include <string>

#include "server/wire/describe.h"
#include "server/wire/utf8.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::http {
namespace {

using tensorflow::Example;
using tensorflow::Feature;

Status AddFloat(double wide, Feature* feature) {
  const float value = static_cast<float>(wide);
  if (std::isinf(value) && std::isfinite(wide)) return InvalidArgument("is too large for a float");
  feature->mutable_float_list()->add_value(value);
  return OkStatus();
}

Status AddInt64(const rapidjson::Value& value, Feature* feature) {
  if (!value.IsInt64()) return InvalidArgument("does not fit an int64");
  feature->mutable_int64_list()->add_value(value.GetInt64());
  return OkStatus();
}

Status AddBytes(const rapidjson::Value& value, Feature* feature) {
  std::string* bytes = feature->mutable_bytes_list()->add_value();
  if (value.IsString()) {
    *bytes = Text(value);
  } else if (!DecodeBase64(value, bytes)) {
    return InvalidArgument("is not base64");
  }
  return OkStatus();
}

Feature::KindCase KindOf(const rapidjson::Value& value) {
  if (value.IsBool()) return Feature::kInt64List;
  if (value.IsNumber()) return value.IsDouble() ? Feature::kFloatList : Feature::kInt64List;
  if (value.IsString() || IsBase64(value)) return Feature::kBytesList;
  return Feature::KIND_NOT_SET;
}

// The message goes on after the description of the value.
Status AddValue(const rapidjson::Value& value, Feature* feature) {
  const Feature::KindCase kind = KindOf(value);
  if (kind == Feature::KIND_NOT_SET) {
    return InvalidArgument("can not be a value, expected a number, a string or {\"b64\": \"...\"}");
  }
  if (feature->kind_case() != Feature::KIND_NOT_SET && feature->kind_case() != kind) {
    return InvalidArgument("is of another kind than the values before it");
  }
  switch (kind) {
    case Feature::kFloatList:
      return AddFloat(value.GetDouble(), feature);
    case Feature::kInt64List:
      if (!value.IsBool()) return AddInt64(value, feature);
      feature->mutable_int64_list()->add_value(value.GetBool() ? 1 : 0);
      return OkStatus();
    default:
      return AddBytes(value, feature);
  }
}

Status ReadFeature(const rapidjson::Value& values, Feature* feature) {
  if (!values.IsArray()) {
    const Status status = AddValue(values, feature);
    return status.ok() ? status : InvalidArgument(": ", Describe(values), ' ', status.message);
  }
  for (rapidjson::SizeType i = 0; i < values.Size(); ++i) {
    if (Status status = AddValue(values[i], feature); !status.ok()) {
      return InvalidArgument("[", i, "]: ", Describe(values[i]), ' ', status.message);
    }
  }
  return OkStatus();
}

Status ReadExample(const std::string& where, const rapidjson::Value& object, Example* example) {
  if (!object.IsObject()) {
    return InvalidArgument(where, " is ", Describe(object), ", expected an object of features");
  }
  auto& features = *example->mutable_features()->mutable_feature();
  for (const auto& member : object.GetObject()) {
    const std::string name(Text(member.name));
    if (!IsValidUtf8(name)) {
      return InvalidArgument(where, ": a feature's name is not UTF-8");
    }
    if (features.count(name) > 0) {
      return InvalidArgument(where, ": feature ", Quoted(name), " comes twice");
    }
    if (Status status = ReadFeature(member.value, &features[name]); !status.ok()) {
      return InvalidArgument(where, ": feature ", Quoted(name), status.message);
    }
  }
  return OkStatus();
}

}  // namespace

Status ReadExamples(const rapidjson::Value& body, tensorflow::serving::Input* input) {
  const rapidjson::Value* examples = FindMember(body, "examples");
  if (examples == nullptr) return InvalidArgument("Missing 'examples' key");
  if (!examples->IsArray()) {
    return InvalidArgument("\"examples\" is ", Describe(*examples), ", expected a list of objects");
  }
  if (examples->Empty()) return InvalidArgument("\"examples\" is an empty list");
  const rapidjson::Value* context = FindMember(body, "context");
  if (context != nullptr) {
    Example* shared = input->mutable_example_list_with_context()->mutable_context();
    if (Status status = ReadExample("\"context\"", *context, shared); !status.ok()) return status;
  }
  for (rapidjson::SizeType i = 0; i < examples->Size(); ++i) {
    Example* example = context != nullptr
                           ? input->mutable_example_list_with_context()->add_examples()
                           : input->mutable_example_list()->add_examples();
    const std::string where = "examples[" + std::to_string(i) + "]";
    if (Status status = ReadExample(where, (*examples)[i], example); !status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace colcast::http
