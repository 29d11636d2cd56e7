#include "server/rest/example_json.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "server/rest/example_writer.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_value.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"

namespace colcast::http {
namespace {

// Reads one tf.Example, or a list of them.
class ExampleReader : public ValueReader {
 public:
  // `example_depth` is the number of lists that contain an Example.
  ExampleReader(RequestMemory* memory, size_t example_depth)
      : writer_(memory), example_depth_(example_depth) {}

 protected:
  virtual std::string Here() const = 0;
  virtual void Keep(const std::string& example) = 0;

  void OnValue(const JsonValue& value) override {
    if (depth() < example_depth_) return;
    if (depth() == example_depth_) return BeginExample(value);
    if (depth() == example_depth_ + 1) {
      in_list_ = value.kind == JsonValue::Kind::kList;
      if (in_list_) return;
    }
    if (Status status = writer_.Add(value); !status.ok()) {
      std::string where = Here() + ": feature " + Quoted(writer_.feature());
      if (in_list_) where += '[' + std::to_string(index_) + ']';
      return FailAt(where + ": ", value, ' ' + status.message);
    }
    if (!in_list_) return writer_.EndFeature();
    ++index_;
  }

  void OnKey(std::string_view name) override {
    if (depth() != example_depth_ + 1) return;
    index_ = 0;
    if (Status status = writer_.BeginFeature(name); !status.ok()) {
      Fail(InvalidArgument(Here(), ": ", status.message));
    }
  }

  void OnEnd(size_t /*count*/) override {
    if (depth() == example_depth_ + 1) {
      writer_.EndFeature();
    } else if (depth() == example_depth_) {
      Keep(writer_.End());
    }
  }

 private:
  void BeginExample(const JsonValue& value) {
    writer_.Begin();
    if (value.kind == JsonValue::Kind::kObject) return;
    if (value.kind != JsonValue::Kind::kBase64) {
      return FailAt(Here() + " is ", value, ", expected an object of features");
    }
    // At this place, {"b64": ...} is an Example with a feature "b64".
    if (Status status = writer_.BeginFeature("b64"); !status.ok()) return Fail(std::move(status));
    if (Status status = writer_.Add(JsonString(value.text)); !status.ok()) {
      return Fail(std::move(status));
    }
    writer_.EndFeature();
    Keep(writer_.End());
  }

  ExampleWriter writer_;
  const size_t example_depth_;
  bool in_list_ = false;
  size_t index_ = 0;
};

class ContextReader final : public ExampleReader {
 public:
  ContextReader(RequestMemory* memory, std::string* context)
      : ExampleReader(memory, 0), context_(context) {}

 private:
  std::string Here() const override { return "\"context\""; }
  void Keep(const std::string& example) override { *context_ = example; }

  std::string* const context_;
};

class ExamplesReader final : public ExampleReader {
 public:
  ExamplesReader(const RowLimit* limit, RequestMemory* memory, SliceBuffer* bytes)
      : ExampleReader(memory, 1), limit_(limit), bytes_(bytes) {}

  // The error of the list itself. status() has the error of the first malformed Example.
  Status CheckList() const {
    if (!is_list_) return status();
    return count() > 0 ? OkStatus() : InvalidArgument("\"examples\" is an empty list");
  }

  // Call after reading.
  std::vector<Bytes> Examples() const {
    std::vector<Bytes> examples;
    examples.reserve(ends_.size());
    Reader bytes(bytes_->bytes());
    size_t begin = 0;
    for (const size_t end : ends_) {
      examples.push_back(bytes.Take(end - begin));
      begin = end;
    }
    return examples;
  }

 private:
  std::string Here() const override { return "examples[" + std::to_string(ends_.size()) + "]"; }

  void OnValue(const JsonValue& value) override {
    if (depth() == 1 && limit_ != nullptr && ++examples_ > limit_->max_rows) {
      return Stop(limit_->TooMany("\"examples\""));
    }
    if (depth() > 0) return ExampleReader::OnValue(value);
    is_list_ = value.kind == JsonValue::Kind::kList;
    if (!is_list_) FailAt("\"examples\" is ", value, ", expected a list of objects");
  }

  void Keep(const std::string& example) override {
    bytes_->Append(example);
    ends_.push_back(bytes_->size());
  }

  const RowLimit* const limit_;
  SliceBuffer* const bytes_;
  bool is_list_ = false;
  int64_t examples_ = 0;  // number of examples that have begun
  std::vector<size_t> ends_;
};

// Reads the members of the body. If a member is repeated, the first one counts.
class BodyReader final : public MembersReader {
 public:
  BodyReader(const RowLimit* limit, RequestMemory* memory, SliceBuffer* bytes, std::string* context)
      : examples_(limit, memory, bytes), context_(memory, context) {}

  const StringReader& signature_name() const { return signature_name_; }

  Status Finish(std::vector<Bytes>* examples) const {
    if (!examples_given_) return InvalidArgument("Missing 'examples' key");
    if (Status status = examples_.CheckList(); !status.ok()) return status;
    if (!context_.status().ok()) return context_.status();
    if (examples_.status().ok()) *examples = examples_.Examples();
    return examples_.status();
  }

 private:
  ValueReader* ReaderOf(std::string_view name) override {
    if (name == "signature_name") return First(&name_given_, &signature_name_);
    if (name == "examples") return First(&examples_given_, &examples_);
    return name == "context" ? First(&context_given_, &context_) : nullptr;
  }

  StringReader signature_name_{"signature_name"};
  ExamplesReader examples_;
  ContextReader context_;
  bool name_given_ = false;
  bool examples_given_ = false;
  bool context_given_ = false;
};

}  // namespace

Status ExamplesJson::Read(const BodyBytes& body) {
  bytes_.Clear();
  input_ = ExampleInput();
  BodyReader reader(body.rows, memory_, &bytes_, &input_.context);
  if (Status status = ReadJson(body, memory_, &reader); !status.ok()) return status;
  if (!reader.status().ok()) return reader.status();
  if (!reader.signature_name().status().ok()) return reader.signature_name().status();
  signature_name_ = reader.signature_name().text();
  examples_status_ = reader.Finish(&input_.examples);
  return OkStatus();
}

}  // namespace colcast::http
