#include "server/rest/example_json.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/text.h"
#include "server/rest/json_reader.h"
#include "server/wire/data_type.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::http {
namespace {

// Builds one tf.Example while its JSON is read.
class ExampleBuilder {
 public:
  explicit ExampleBuilder(RequestMemory* memory) : memory_(memory) {}
  ~ExampleBuilder() {
    if (memory_ != nullptr) memory_->Return(counted_);
  }
  ExampleBuilder(const ExampleBuilder&) = delete;

  void Begin() {
    example_.Clear();
    example_.mutable_features();
    taken_ = 0;
  }

  // Returns INVALID_ARGUMENT for a name that is not UTF-8 or is repeated. The caller prepends the
  // beginning of the sentence.
  Status BeginFeature(std::string_view name) {
    if (!IsValidUtf8(name)) return InvalidArgument("a feature's name is not UTF-8");
    name_ = name;
    auto& features = *example_.mutable_features()->mutable_feature();
    if (features.contains(name_)) {
      return InvalidArgument("feature ", Quoted(name), " appears twice");
    }
    Count(name.size());
    feature_ = &features[name_];
    return OkStatus();
  }
  const std::string& name() const { return name_; }  // of the current feature

  // Returns INVALID_ARGUMENT if the value's kind is unsupported or differs from that of earlier
  // values. The caller prepends the culprit's name.
  Status Add(const JsonValue& value) {
    const auto kind = KindOf(value);
    if (kind == Feature::KIND_NOT_SET) {
      return InvalidArgument(
          "cannot be a value, expected a number, a string or {\"b64\": \"...\"}");
    }
    if (feature_->kind_case() != Feature::KIND_NOT_SET && feature_->kind_case() != kind) {
      return InvalidArgument("is of a different kind than the values before it");
    }
    Count(value.text.size());
    switch (kind) {
      case Feature::kFloatList:
        return AddFloat(value.real);
      case Feature::kInt64List:
        return AddInt64(value);
      default:
        return AddBytes(value);
    }
  }

  const tensorflow::Example& example() const { return example_; }

 private:
  using Feature = tensorflow::Feature;
  using Kind = JsonValue::Kind;

  static Feature::KindCase KindOf(const JsonValue& value) {
    switch (value.kind) {
      case Kind::kBool:
      case Kind::kInt64:
      case Kind::kUint64:
        return Feature::kInt64List;
      case Kind::kDouble:
        return Feature::kFloatList;
      case Kind::kString:
      case Kind::kBase64:
        return Feature::kBytesList;
      default:
        return Feature::KIND_NOT_SET;
    }
  }

  Status AddFloat(double wide) {
    const auto value = static_cast<float>(wide);
    if (std::isinf(value) && std::isfinite(wide)) {
      return InvalidArgument("is too large for a float");
    }
    feature_->mutable_float_list()->add_value(value);
    return OkStatus();
  }

  Status AddInt64(const JsonValue& value) {
    if (value.kind == Kind::kUint64) return InvalidArgument("does not fit an int64");
    feature_->mutable_int64_list()->add_value(value.kind == Kind::kBool ? value.truth
                                                                        : value.whole);
    return OkStatus();
  }

  Status AddBytes(const JsonValue& value) {
    std::string bytes(value.text);
    if (value.kind == Kind::kBase64 && !DecodeBase64(value, &bytes)) {
      return InvalidArgument("is not base64");
    }
    feature_->mutable_bytes_list()->add_value(std::move(bytes));
    return OkStatus();
  }

  // Counts additional memory when an Example is larger than all earlier ones.
  void Count(size_t text) {
    constexpr size_t kObjectBytes = 64;  // per string or feature
    taken_ += kObjectBytes + text;
    if (memory_ == nullptr || taken_ <= counted_) return;
    memory_->Take(taken_ - counted_);
    counted_ = taken_;
  }

  RequestMemory* const memory_;
  size_t taken_ = 0;
  size_t counted_ = 0;
  tensorflow::Example example_;
  std::string name_;
  Feature* feature_ = nullptr;
};

// Appends the Example with its features sorted by name, because Examples with the same order are
// faster to read.
void AppendSerialized(const tensorflow::Example& example, CountedBytes* bytes) {
  const size_t size = example.ByteSizeLong();
  google::protobuf::io::ArrayOutputStream stream(bytes->Room(size), static_cast<int>(size));
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  example.SerializeWithCachedSizes(&coded);
  bytes->Extend(size);
}

// Reads one tf.Example, or a list of them.
class ExampleReader : public ValueReader {
 public:
  // `example_depth` is the number of lists that contain an Example.
  ExampleReader(RequestMemory* memory, size_t example_depth)
      : builder_(memory), example_depth_(example_depth) {}

 protected:
  virtual std::string Here() const = 0;
  virtual void Keep(const tensorflow::Example& example) = 0;

  void OnValue(const JsonValue& value) override {
    if (depth() < example_depth_) return;
    if (depth() == example_depth_) return BeginExample(value);
    if (depth() == example_depth_ + 1) {
      in_list_ = value.kind == JsonValue::Kind::kList;
      if (in_list_) return;
    }
    if (Status status = builder_.Add(value); !status.ok()) {
      std::string where = Here() + ": feature " + Quoted(builder_.name());
      if (in_list_) where += '[' + std::to_string(index_) + ']';
      return FailAt(where + ": ", value, ' ' + status.message);
    }
    if (in_list_) ++index_;
  }

  void OnKey(std::string_view name) override {
    if (depth() != example_depth_ + 1) return;
    index_ = 0;
    if (Status status = builder_.BeginFeature(name); !status.ok()) {
      Fail(InvalidArgument(Here(), ": ", status.message));
    }
  }

  void OnEnd(size_t /*count*/) override {
    if (depth() == example_depth_) Keep(builder_.example());
  }

 private:
  void BeginExample(const JsonValue& value) {
    builder_.Begin();
    if (value.kind == JsonValue::Kind::kObject) return;
    if (value.kind != JsonValue::Kind::kBase64) {
      return FailAt(Here() + " is ", value, ", expected an object of features");
    }
    // In place of an Example, {"b64": ...} is an Example with a feature "b64".
    if (Status status = builder_.BeginFeature("b64"); !status.ok()) return Fail(std::move(status));
    if (Status status = builder_.Add(JsonString(value.text)); !status.ok()) {
      return Fail(std::move(status));
    }
    Keep(builder_.example());
  }

  ExampleBuilder builder_;
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
  void Keep(const tensorflow::Example& example) override { example.SerializeToString(context_); }

  std::string* const context_;
};

class ExamplesReader final : public ExampleReader {
 public:
  ExamplesReader(int64_t max_examples, RequestMemory* memory, CountedBytes* bytes)
      : ExampleReader(memory, 1), max_examples_(max_examples), bytes_(bytes) {}

  // Call after reading.
  std::vector<Bytes> Examples() const {
    std::vector<Bytes> examples;
    examples.reserve(ends_.size());
    size_t begin = 0;
    for (const size_t end : ends_) {
      examples.emplace_back(bytes_->data() + begin, end - begin);
      begin = end;
    }
    return examples;
  }

 private:
  std::string Here() const override { return "examples[" + std::to_string(ends_.size()) + "]"; }

  void OnValue(const JsonValue& value) override {
    if (depth() == 1 && ++examples_ > max_examples_) {
      return Stop(TooManyRows("\"examples\"", max_examples_));
    }
    if (depth() > 0) return ExampleReader::OnValue(value);
    if (value.kind != JsonValue::Kind::kList) {
      FailAt("\"examples\" is ", value, ", expected a list of objects");
    }
  }

  void OnEnd(size_t count) override {
    if (depth() > 0) return ExampleReader::OnEnd(count);
    if (count == 0) Fail(InvalidArgument("\"examples\" is an empty list"));
  }

  void Keep(const tensorflow::Example& example) override {
    AppendSerialized(example, bytes_);
    ends_.push_back(bytes_->size());
  }

  const int64_t max_examples_;
  CountedBytes* const bytes_;
  int64_t examples_ = 0;  // number of examples that have begun
  std::vector<size_t> ends_;
};

// Reads the members of the body. If a member is repeated, the first one counts.
class BodyReader final : public MembersReader {
 public:
  BodyReader(int64_t max_examples, RequestMemory* memory, CountedBytes* bytes, std::string* context)
      : examples_(max_examples, memory, bytes), context_(memory, context) {}

  const StringReader& signature_name() const { return signature_name_; }

  Status Finish(std::vector<Bytes>* examples) const {
    if (!examples_given_) return InvalidArgument("Missing 'examples' key");
    if (!examples_.status().ok()) return examples_.status();
    *examples = examples_.Examples();
    return context_.status();
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

Status ExamplesJson::Read(std::string_view text, int64_t max_examples) {
  bytes_.Clear();
  input_ = ExampleInput();
  BodyReader reader(max_examples, memory_, &bytes_, &input_.context);
  if (Status status = ReadJson(text, memory_, &reader); !status.ok()) return status;
  if (!reader.status().ok()) return reader.status();
  if (!reader.signature_name().status().ok()) return reader.signature_name().status();
  signature_name_ = reader.signature_name().text();
  return reader.Finish(&input_.examples);
}

}  // namespace colcast::http
