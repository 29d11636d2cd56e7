#include "server/engine/fuzz/oracle.h"

#include <cstdio>
#include <cstdlib>
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

namespace colcast::fuzz {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::Reflection;
using tensorflow::Tensor;
using tensorflow::TensorProto;
using tensorflow::TensorShape;

constexpr int64_t kMaxElements = 1 << 12;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "oracle: %s\n", why.c_str());
  std::abort();
}

// Makes fields bytes that server/wire does not look into, so that protobuf does not either.
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

// Parses PredictRequests by their descriptor.
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

// The number of values in the typed field that TensorFlow reads for the dtype.
int64_t SentValues(const TensorProto& proto) {
  switch (proto.dtype()) {
    case tensorflow::DT_FLOAT:
      return proto.float_val_size();
    case tensorflow::DT_DOUBLE:
      return proto.double_val_size();
    case tensorflow::DT_STRING:
      return proto.string_val_size();
    case tensorflow::DT_COMPLEX64:
      return proto.scomplex_val_size() / 2;
    case tensorflow::DT_COMPLEX128:
      return proto.dcomplex_val_size() / 2;
    case tensorflow::DT_INT64:
      return proto.int64_val_size();
    case tensorflow::DT_BOOL:
      return proto.bool_val_size();
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return proto.half_val_size();
    case tensorflow::DT_UINT32:
      return proto.uint32_val_size();
    case tensorflow::DT_UINT64:
      return proto.uint64_val_size();
    case tensorflow::DT_FLOAT8_E5M2:
    case tensorflow::DT_FLOAT8_E4M3FN:
    case tensorflow::DT_FLOAT8_E4M3FNUZ:
    case tensorflow::DT_FLOAT8_E4M3B11FNUZ:
    case tensorflow::DT_FLOAT8_E5M2FNUZ:
      return static_cast<int64_t>(proto.float8_val().size());
    default:
      return proto.int_val_size();
  }
}

void ReadTensor(const Tensor& tensor, OracleColumn* column) {
  if (tensor.dtype() == tensorflow::DT_STRING) {
    const auto strings = tensor.flat<tensorflow::tstring>();
    for (int64_t i = 0; i < strings.size(); ++i) column->strings.emplace_back(strings(i));
  } else {
    column->memory = std::string(tensor.tensor_data());
  }
  TensorProto proto;
  tensor.AsProtoField(&proto);
  column->typed_proto = proto.SerializeAsString();
  proto.Clear();
  tensor.AsProtoTensorContent(&proto);
  column->content_proto = proto.SerializeAsString();
}

// The number of values in all typed fields.
int64_t AllValues(const TensorProto& proto) {
  return proto.float_val_size() + proto.double_val_size() + proto.int_val_size() +
         proto.string_val_size() + proto.scomplex_val_size() + proto.int64_val_size() +
         proto.bool_val_size() + proto.dcomplex_val_size() + proto.half_val_size() +
         proto.uint32_val_size() + proto.uint64_val_size() +
         static_cast<int64_t>(proto.float8_val().size());
}

// The number of values in the dtype's own typed field; a complex number has two.
int64_t OwnValues(const TensorProto& proto) {
  switch (proto.dtype()) {
    case tensorflow::DT_COMPLEX64:
      return proto.scomplex_val_size();
    case tensorflow::DT_COMPLEX128:
      return proto.dcomplex_val_size();
    default:
      return SentValues(proto);
  }
}

// `parsed` is a TensorProto by descriptor.
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
  column.refused_on_purpose = column.unknown_rank || (count == 0 && has_content) ||
                              (!has_content && SentValues(proto) > count) ||
                              AllValues(proto) > (has_content ? 0 : OwnValues(proto));
  if (count > kMaxElements) {
    column.verdict = Verdict::kTooLarge;
    return column;
  }
  Tensor tensor;
  if (!tensor.FromProto(proto)) return column;
  column.verdict = Verdict::kAccepted;
  ReadTensor(tensor, &column);
  return column;
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

}  // namespace colcast::fuzz
