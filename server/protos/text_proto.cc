#include "server/protos/text_proto.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "server/base/file.h"

namespace colcast {
namespace {

// Configuration messages nest at most five deep, except for an Any, which could nest deeper.
constexpr int kMaxNesting = 16;

// Keeps only the first error, since later ones tend to follow from it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  // Protobuf counts lines and columns from 0; line -1 means the whole text.
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    if (line >= 0) place_ = std::to_string(line + 1) + ':' + std::to_string(column + 1) + ':';
    text_ = message;
  }
  const std::string& place() const { return place_; }
  const std::string& text() const { return text_; }

 private:
  std::string place_, text_;
};

}  // namespace

Status ParseTextProto(const std::string& text, const std::string& source,
                      google::protobuf::Message* message) {
  const std::string& type = message->GetDescriptor()->full_name();
  if (text.find('\0') != std::string::npos) {
    return InvalidArgument(source, " is binary, expected ", type, " as text");
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  if (parser.ParseFromString(text, message)) return OkStatus();
  // Uses TensorFlow Serving's wording, because operators search logs for it.
  return InvalidArgument(source, ":", error.place(), " Error parsing text-format ", type, ": ",
                         error.text());
}

Status ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  std::string content;
  if (Status status = ReadFile(path, &content); !status.ok()) return status;
  return ParseTextProto(content, path, message);
}

}  // namespace colcast
