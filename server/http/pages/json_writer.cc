#include "server/http/pages/json_writer.h"

#include <cmath>

#include "server/base/json_text.h"

namespace colcast::http {

void JsonWriter::Add(const Value& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    const std::string quoted = JsonQuoted(*text);
    json_.RawValue(quoted.data(), quoted.size(), rapidjson::kStringType);
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    json_.Int64(*whole);
  } else if (const auto* real = std::get_if<double>(&value); real == nullptr) {
    json_.Null();
  } else if (std::isfinite(*real)) {
    json_.Double(*real);
  } else {
    json_.String(std::isnan(*real) ? "NaN" : *real > 0 ? "Infinity" : "-Infinity");
  }
}

void JsonWriter::Add(Fields fields) {
  for (const auto& [name, value] : fields) {
    Key(name);
    Add(value);
  }
}

void JsonWriter::Key(std::string_view name) {
  json_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
}

}  // namespace colcast::http
