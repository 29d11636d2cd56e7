#include "server/base/json_writer.h"

#include <cmath>

#include "server/base/text.h"

namespace colcast {

void JsonWriter::Add(const Value& value) {
  Separate();
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    text_ += JsonQuoted(*text);
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    text_ += std::to_string(*whole);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    text_ += *truth ? "true" : "false";
  } else if (const auto* real = std::get_if<double>(&value); real == nullptr) {
    text_ += "null";
  } else if (std::isfinite(*real)) {
    AppendJsonDecimal(*real, &text_);
  } else {
    text_ += std::isnan(*real) ? "\"NaN\"" : *real > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

void JsonWriter::Add(Fields fields) {
  for (const auto& [name, value] : fields) {
    Key(name);
    Add(value);
  }
}

void JsonWriter::Key(std::string_view name) {
  Separate();
  text_ += JsonQuoted(name);
  text_ += ':';
}

void JsonWriter::Separate() {
  if (!text_.empty() && std::string_view("{[:").find(text_.back()) == std::string_view::npos) {
    text_ += ',';
  }
}

}  // namespace colcast
