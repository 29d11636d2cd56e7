#include "server/base/text_proto.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "server/base/file.h"

namespace colcast {
namespace {

// Keeps the first error: those after it tend to follow from it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    text_ = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
            message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

Status ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  std::string content;
  if (Status status = ReadFile(path, &content); !status.ok()) return status;
  if (content.find('\0') != std::string::npos) {
    return InvalidArgument(path, " is binary, expected ", message->GetDescriptor()->full_name(),
                           " as text");
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(content, message)) return OkStatus();
  return InvalidArgument(path, " is no ", message->GetDescriptor()->full_name(), ": ",
                         error.text());
}

}  // namespace colcast
