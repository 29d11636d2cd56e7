#include "server/rest/json_response.h"

#include <absl/strings/escaping.h>

#include <charconv>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "server/base/text.h"
#include "server/wire/data_type.h"

namespace colcast::http {
namespace {

constexpr std::string_view kBytesSuffix = "_bytes";

template <typename Number>
void AppendNumber(Number value, std::string* json) {
  if constexpr (std::is_floating_point_v<Number>) {
    AppendJsonDecimal(value, json);
  } else {
    char text[24];
    json->append(text, std::to_chars(text, text + sizeof(text), value).ptr);
  }
}

void AppendBase64(std::string_view bytes, std::string* json) {
  std::string base64;
  absl::Base64Escape({bytes.data(), bytes.size()}, &base64);
  json->append("{\"b64\": \"").append(base64).append("\"}");
}

template <typename T>
T ElementAt(const OutputColumn& output, int64_t index) {
  T element;
  std::memcpy(&element, static_cast<const char*>(output.data) + index * sizeof(T), sizeof(T));
  return element;
}

bool IsBytes(const OutputColumn& output) {
  return output.name.size() >= kBytesSuffix.size() &&
         output.name.substr(output.name.size() - kBytesSuffix.size()) == kBytesSuffix;
}

// Returns false for a dtype that JSON cannot represent.
bool AppendElement(const OutputColumn& output, int64_t index, std::string* json) {
  if (output.dtype == DT_STRING) {
    const std::string_view text = output.string_at(output.data, index);
    const bool is_text = !IsBytes(output) && IsValidUtf8(text);
    is_text ? AppendJsonString(text, json) : AppendBase64(text, json);
    return true;
  }
  if (output.dtype == DT_BOOL) {
    json->append(ElementAt<uint8_t>(output, index) != 0 ? "true" : "false");
    return true;
  }
  return VisitNumber(output.dtype, [&](auto type) {
    AppendNumber(ElementAt<decltype(type)>(output, index), json);
  });
}

// Appends elements from *index on, nested in lists for dimension `dim` and all later dimensions.
bool AppendValues(const OutputColumn& output, size_t dim, int64_t* index, std::string* json) {
  if (dim >= output.dims.size()) return AppendElement(output, (*index)++, json);
  json->push_back('[');
  for (int64_t i = 0; i < output.dims[dim]; ++i) {
    if (i > 0) json->append(", ");
    if (!AppendValues(output, dim + 1, index, json)) return false;
  }
  json->push_back(']');
  return true;
}

Status NoForm(const OutputColumn& output) {
  return InvalidArgument("output ", Quoted(output.name), ": ", DataTypeName(output.dtype),
                         " cannot be represented in JSON; ask for it over gRPC");
}

void AppendName(const OutputColumn& output, std::string* json) {
  AppendJsonString(output.name, json);
  json->append(": ");
}

Status CheckRows(const std::vector<OutputColumn>& outputs) {
  for (const OutputColumn& output : outputs) {
    if (output.dims.size() == 0) {
      return InvalidArgument("output ", Quoted(output.name), " is a scalar and has no rows; send ",
                             "\"inputs\" in place of \"instances\"");
    }
    if (output.dims[0] != outputs[0].dims[0]) {
      return InvalidArgument("output ", Quoted(output.name), " has ", output.dims[0],
                             " rows, output ", Quoted(outputs[0].name), " ", outputs[0].dims[0],
                             "; send \"inputs\" in place of \"instances\"");
    }
  }
  return OkStatus();
}

Status AppendRow(const std::vector<OutputColumn>& outputs, std::vector<int64_t>* next,
                 std::string* json) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs.size() > 1) {
      json->append(i == 0 ? "{" : ", ");
      AppendName(outputs[i], json);
    }
    if (!AppendValues(outputs[i], 1, &(*next)[i], json)) return NoForm(outputs[i]);
  }
  if (outputs.size() > 1) json->push_back('}');
  return OkStatus();
}

Status AppendRows(const std::vector<OutputColumn>& outputs, std::string* json) {
  if (Status status = CheckRows(outputs); !status.ok()) return status;
  std::vector<int64_t> next(outputs.size());
  json->push_back('[');
  for (int64_t row = 0; row < outputs[0].dims[0]; ++row) {
    if (row > 0) json->append(", ");
    if (Status status = AppendRow(outputs, &next, json); !status.ok()) return status;
  }
  json->push_back(']');
  return OkStatus();
}

Status AppendColumns(const std::vector<OutputColumn>& outputs, std::string* json) {
  const bool named = outputs.size() > 1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (named) {
      json->append(i == 0 ? "{\n        " : ",\n        ");
      AppendName(outputs[i], json);
    }
    int64_t index = 0;
    if (!AppendValues(outputs[i], 0, &index, json)) return NoForm(outputs[i]);
  }
  if (named) json->append("\n    }");
  return OkStatus();
}

}  // namespace

Status WriteOutputs(const std::vector<OutputColumn>& outputs, JsonFormat format,
                    std::string* json) {
  if (outputs.empty()) return InvalidArgument("the signature has no outputs");
  const bool rows = format == JsonFormat::kRows;
  *json = rows ? "{\n    \"predictions\": " : "{\n    \"outputs\": ";
  const Status status = rows ? AppendRows(outputs, json) : AppendColumns(outputs, json);
  json->append("\n}");
  return status;
}

std::string WriteClassifications(const tensorflow::serving::ClassificationResult& result) {
  std::string json = "{\n    \"results\": [";
  for (int i = 0; i < result.classifications_size(); ++i) {
    json += i == 0 ? "[" : ", [";
    const char* separator = "";
    for (const auto& label : result.classifications(i).classes()) {
      json += separator;
      separator = ", ";
      json += '[' + JsonQuoted(label.label()) + ", ";
      AppendJsonDecimal(label.score(), &json);
      json += ']';
    }
    json += ']';
  }
  return json + "]\n}";
}

std::string WriteRegressions(const tensorflow::serving::RegressionResult& result) {
  std::string json = "{\n    \"results\": [";
  for (int i = 0; i < result.regressions_size(); ++i) {
    if (i > 0) json += ", ";
    AppendJsonDecimal(result.regressions(i).value(), &json);
  }
  return json + "]\n}";
}

}  // namespace colcast::http
