#include "server/engine/fuzz/oracle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/reflection.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/util/example_proto_fast_parsing.h"

namespace colcast::fuzz {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::Reflection;
using tensorflow::DataType;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorProto;
using tensorflow::TensorShape;
using tensorflow::tstring;

constexpr int64_t kMaxElements = 1 << 12;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "oracle: %s\n", why.c_str());
  std::abort();
}

// Declares as bytes the fields that server/wire does not parse, so that protobuf does not either.
void HideIgnoredFields(google::protobuf::FileDescriptorProto* file) {
  for (auto& type : *file->mutable_message_type()) {
    for (auto& field : *type.mutable_field()) {
      const std::string& name = field.name();
      if (name != "predict_streamed_options" && name != "request_options" &&
          name != "resource_handle_val" && name != "variant_val") {
        continue;
      }
      field.set_type(google::protobuf::FieldDescriptorProto::TYPE_BYTES);
      field.clear_type_name();
    }
  }
}

// Parses PredictRequests as dynamic messages.
class RequestParser {
 public:
  explicit RequestParser(const char* descriptor_set) : factory_(&pool_) {
    absl::SetMinLogLevel(absl::LogSeverityAtLeast::kInfinity);  // malformed messages are expected
    google::protobuf::FileDescriptorSet files;
    std::ifstream in(descriptor_set, std::ios::binary);
    if (!files.ParseFromIstream(&in)) Die(std::string("cannot read ") + descriptor_set);
    for (auto& file : *files.mutable_file()) {
      HideIgnoredFields(&file);
      if (pool_.BuildFile(file) == nullptr) Die("cannot build " + file.name());
    }
    const auto* type = pool_.FindMessageTypeByName("tensorflow.serving.PredictRequest");
    if (type == nullptr) Die("no PredictRequest");
    prototype_ = factory_.GetPrototype(type);
  }

  std::unique_ptr<Message> Parse(std::string_view message) const {
    std::unique_ptr<Message> request(prototype_->New());
    const bool ok = request->ParseFromArray(message.data(), static_cast<int>(message.size()));
    return ok ? std::move(request) : nullptr;
  }

 private:
  DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  const Message* prototype_;
};

const FieldDescriptor* Field(const Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

std::string GetString(const Message& message, const char* name) {
  return message.GetReflection()->GetString(message, Field(message, name));
}

const Message& GetMessage(const Message& message, const char* name) {
  return message.GetReflection()->GetMessage(message, Field(message, name));
}

bool Has(const Message& message, const char* name) {
  return message.GetReflection()->HasField(message, Field(message, name));
}

// The number of the TensorProto field that holds values of this dtype.
int FieldOf(int dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return TensorProto::kFloatValFieldNumber;
    case tensorflow::DT_DOUBLE:
      return TensorProto::kDoubleValFieldNumber;
    case tensorflow::DT_STRING:
      return TensorProto::kStringValFieldNumber;
    case tensorflow::DT_COMPLEX64:
      return TensorProto::kScomplexValFieldNumber;
    case tensorflow::DT_COMPLEX128:
      return TensorProto::kDcomplexValFieldNumber;
    case tensorflow::DT_INT64:
      return TensorProto::kInt64ValFieldNumber;
    case tensorflow::DT_BOOL:
      return TensorProto::kBoolValFieldNumber;
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return TensorProto::kHalfValFieldNumber;
    case tensorflow::DT_UINT32:
      return TensorProto::kUint32ValFieldNumber;
    case tensorflow::DT_UINT64:
      return TensorProto::kUint64ValFieldNumber;
    default:
      return dtype >= tensorflow::DT_FLOAT8_E5M2 && dtype <= tensorflow::DT_FLOAT8_E5M2FNUZ
                 ? TensorProto::kFloat8ValFieldNumber
                 : TensorProto::kIntValFieldNumber;
  }
}

// The number of values in a typed field of `parsed`; a complex number has two.
int64_t ValuesIn(const Message& parsed, int number) {
  const FieldDescriptor* const field = parsed.GetDescriptor()->FindFieldByNumber(number);
  const Reflection& reflection = *parsed.GetReflection();
  if (field->is_repeated()) return reflection.FieldSize(parsed, field);
  return static_cast<int64_t>(reflection.GetString(parsed, field).size());
}

// Reads the elements into an OracleColumn or OracleValues.
template <typename To>
void ReadElements(const Tensor& tensor, To* to) {
  if (tensor.dtype() == tensorflow::DT_STRING) {
    const auto strings = tensor.flat<tstring>();
    for (int64_t i = 0; i < strings.size(); ++i) to->strings.emplace_back(strings(i));
  } else {
    to->memory = std::string(tensor.tensor_data());
  }
}

// `parsed` is a dynamic message of type TensorProto.
OracleColumn ReadColumn(Message* parsed) {
  for (const char* const hidden : {"resource_handle_val", "variant_val"}) {
    parsed->GetReflection()->ClearField(parsed, Field(*parsed, hidden));
  }
  TensorProto proto;
  if (!proto.ParseFromString(parsed->SerializeAsString())) Die("TensorProtos differ");
  OracleColumn column;
  column.dtype = proto.dtype();
  column.unknown_rank = proto.tensor_shape().unknown_rank();
  for (const auto& dim : proto.tensor_shape().dim()) column.dims.push_back(dim.size());
  column.refused_on_purpose = false;
  column.verdict = Verdict::kRefused;
  if (proto.dtype() == tensorflow::DT_RESOURCE || proto.dtype() == tensorflow::DT_VARIANT) {
    column.refused_on_purpose = true;
    return column;
  }
  if (!TensorShape::IsValid(proto.tensor_shape())) return column;
  const int64_t count = TensorShape(proto.tensor_shape()).num_elements();
  const bool has_content = !proto.tensor_content().empty();
  const bool is_complex =
      proto.dtype() == tensorflow::DT_COMPLEX64 || proto.dtype() == tensorflow::DT_COMPLEX128;
  const int64_t own = ValuesIn(*parsed, FieldOf(proto.dtype()));
  int64_t all = 0;
  for (int number = TensorProto::kFloatValFieldNumber; number <= TensorProto::kFloat8ValFieldNumber;
       ++number) {
    all += ValuesIn(*parsed, number);
  }
  column.refused_on_purpose = column.unknown_rank || (count == 0 && has_content) ||
                              (!has_content && own / (is_complex ? 2 : 1) > count) ||
                              all > (has_content ? 0 : own);
  if (count > kMaxElements) {
    column.verdict = Verdict::kTooLarge;
    return column;
  }
  Tensor tensor;
  if (!tensor.FromProto(proto)) return column;
  column.verdict = Verdict::kAccepted;
  ReadElements(tensor, &column);
  proto.Clear();
  tensor.AsProtoField(&proto);
  column.typed_proto = proto.SerializeAsString();
  proto.Clear();
  tensor.AsProtoTensorContent(&proto);
  column.content_proto = proto.SerializeAsString();
  return column;
}

Tensor DefaultOf(const ExampleFeature& feature, const TensorShape& shape) {
  const auto dtype = static_cast<DataType>(feature.dtype);
  if (feature.default_values.empty()) return Tensor(dtype, TensorShape({0}));
  Tensor tensor(dtype, shape);
  if (dtype == tensorflow::DT_STRING) {
    TensorProto values;
    if (!values.ParseFromString(feature.default_values)) Die("defaults are no strings");
    std::copy_n(values.string_val().begin(), tensor.NumElements(), tensor.flat<tstring>().data());
  } else {
    std::memcpy(tensor.data(), feature.default_values.data(), tensor.TotalBytes());
  }
  return tensor;
}

void Read(const Tensor& tensor, OracleValues* values) {
  for (int64_t dim : tensor.shape().dim_sizes()) values->dims.push_back(dim);
  ReadElements(tensor, values);
}

}  // namespace

std::optional<OracleRequest> ReadWithTensorFlow(std::string_view message,
                                                const char* descriptor_set) {
  static const auto* const parser = new RequestParser(descriptor_set);
  const std::unique_ptr<Message> request = parser->Parse(message);
  if (request == nullptr) return std::nullopt;
  OracleRequest result;
  const Message& spec = GetMessage(*request, "model_spec");
  result.model_name = GetString(spec, "name");
  result.signature_name = GetString(spec, "signature_name");
  if (Has(spec, "version")) {
    const Message& version = GetMessage(spec, "version");
    result.version = version.GetReflection()->GetInt64(version, Field(version, "value"));
  }
  if (Has(spec, "version_label")) result.version_label = GetString(spec, "version_label");
  const Reflection& reflection = *request->GetReflection();
  const FieldDescriptor* inputs = Field(*request, "inputs");
  for (int i = 0; i < reflection.FieldSize(*request, inputs); ++i) {
    Message* const entry = reflection.MutableRepeatedMessage(request.get(), inputs, i);
    Message* const value =
        entry->GetReflection()->MutableMessage(entry, Field(*entry, "value"), nullptr);
    result.columns[GetString(*entry, "key")] = ReadColumn(value);
  }
  const FieldDescriptor* filter = Field(*request, "output_filter");
  for (int i = 0; i < reflection.FieldSize(*request, filter); ++i) {
    result.output_filter.push_back(reflection.GetRepeatedString(*request, filter, i));
  }
  return result;
}

struct ExampleOracle::Config {
  tensorflow::example::FastParseExampleConfig parser;
  std::vector<FeatureKind> kinds;
};

ExampleOracle::ExampleOracle(const std::vector<ExampleFeature>& features)
    : config_(std::make_unique<Config>()) {
  for (const ExampleFeature& feature : features) {
    config_->kinds.push_back(feature.kind);
    const auto dtype = static_cast<DataType>(feature.dtype);
    switch (feature.kind) {
      case FeatureKind::kVarLen:
        config_->parser.sparse.emplace_back(feature.name, dtype);
        break;
      case FeatureKind::kRagged:
        config_->parser.ragged.emplace_back(feature.name, dtype, tensorflow::DT_INT64);
        break;
      case FeatureKind::kFixedLen:
      case FeatureKind::kFixedLenSequence: {
        const TensorShape inner(feature.shape);
        const bool sequence = feature.kind == FeatureKind::kFixedLenSequence;
        std::vector<int64_t> shape = feature.shape;
        if (sequence) shape.insert(shape.begin(), -1);
        config_->parser.dense.emplace_back(feature.name, dtype, PartialTensorShape(shape),
                                           DefaultOf(feature, sequence ? TensorShape({}) : inner),
                                           sequence, static_cast<size_t>(inner.num_elements()));
      }
    }
  }
}

ExampleOracle::~ExampleOracle() = default;

bool ExampleOracle::Parse(const std::vector<std::string>& examples,
                          std::vector<OracleValues>* values) const {
  const std::vector<tstring> serialized(examples.begin(), examples.end());
  tensorflow::example::Result result;
  if (!tensorflow::example::FastParseExample(config_->parser, serialized, {}, nullptr, &result)
           .ok()) {
    return false;
  }
  size_t sparse = 0, dense = 0, ragged = 0;
  values->clear();
  for (const FeatureKind kind : config_->kinds) {
    OracleValues& value = values->emplace_back();
    if (kind == FeatureKind::kVarLen) {
      Read(result.sparse_values[sparse], &value);
      value.lengths.assign(examples.size(), 0);
      const auto indices = result.sparse_indices[sparse].matrix<int64_t>();
      for (int64_t i = 0; i < indices.dimension(0); ++i) ++value.lengths[indices(i, 0)];
      value.longest = result.sparse_shapes[sparse++].vec<int64_t>()(1);
    } else if (kind == FeatureKind::kRagged) {
      Read(result.ragged_values[ragged], &value);
      const auto splits = result.ragged_splits[ragged++].vec<int64_t>();
      for (size_t i = 0; i < examples.size(); ++i) {
        value.lengths.push_back(splits(i + 1) - splits(i));
      }
    } else {
      Read(result.dense_values[dense++], &value);
    }
  }
  return true;
}

}  // namespace colcast::fuzz
