// libFuzzer target: server/wire must read every ModelInferRequest as protobuf does, however its
// bytes are sliced, and accept it only if each input has as many values as its shape.
//
// The first byte of the input chooses the slices.
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/protos/open_inference.pb.h"
#include "server/wire/column.h"
#include "server/wire/fuzz_testing.h"
#include "server/wire/infer.h"

namespace colcast {
namespace {

using fuzz::Expect;
using inference::ModelInferRequest;
using Input = ModelInferRequest::InferInputTensor;
using Elements = std::vector<std::string>;  // the bytes of each element

// Returns nullopt if the values do not fit their datatype.
template <typename Element, typename Sent>
std::optional<Elements> Typed(const google::protobuf::RepeatedField<Sent>& values) {
  Elements elements;
  for (const Sent value : values) {
    const auto element = static_cast<Element>(value);
    if (static_cast<Sent>(element) != value && value == value) return std::nullopt;
    elements.emplace_back(reinterpret_cast<const char*>(&element), sizeof(element));
  }
  return elements;
}

std::optional<Elements> TypedOf(const Input& input, DataType dtype) {
  const inference::InferTensorContents& all = input.contents();
  switch (dtype) {
    case DT_BOOL:
      return Typed<bool>(all.bool_contents());
    case DT_INT8:
      return Typed<int8_t>(all.int_contents());
    case DT_INT16:
      return Typed<int16_t>(all.int_contents());
    case DT_INT32:
      return Typed<int32_t>(all.int_contents());
    case DT_INT64:
      return Typed<int64_t>(all.int64_contents());
    case DT_UINT8:
      return Typed<uint8_t>(all.uint_contents());
    case DT_UINT16:
      return Typed<uint16_t>(all.uint_contents());
    case DT_UINT32:
      return Typed<uint32_t>(all.uint_contents());
    case DT_UINT64:
      return Typed<uint64_t>(all.uint64_contents());
    case DT_FLOAT:
      return Typed<float>(all.fp32_contents());
    case DT_DOUBLE:
      return Typed<double>(all.fp64_contents());
    case DT_STRING:
      return Elements(all.bytes_contents().begin(), all.bytes_contents().end());
    default:  // typed contents cannot hold it
      return Elements();
  }
}

// The number of values in all typed fields.
int TypedCount(const Input& input) {
  const inference::InferTensorContents& all = input.contents();
  return all.bool_contents_size() + all.int_contents_size() + all.int64_contents_size() +
         all.uint_contents_size() + all.uint64_contents_size() + all.fp32_contents_size() +
         all.fp64_contents_size() + all.bytes_contents_size();
}

std::optional<Elements> RawOf(const std::string& raw, DataType dtype) {
  Elements elements;
  size_t at = 0;
  while (at < raw.size()) {
    uint32_t size = ElementSize(dtype);
    if (dtype == DT_STRING) {
      if (raw.size() - at < sizeof(size)) return std::nullopt;
      std::memcpy(&size, raw.data() + at, sizeof(size));
      at += sizeof(size);
    }
    if (raw.size() - at < size) return std::nullopt;
    elements.push_back(raw.substr(at, size));
    at += size;
  }
  return elements;
}

bool Fits(const Input& input, size_t count) {
  if (input.shape_size() > 254) return false;
  int64_t product = 1;
  for (const int64_t dim : input.shape()) {
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product)) return false;
  }
  return static_cast<size_t>(product) == count;
}

bool IsRefused(const std::string& parameter) {
  return parameter == "sequence_id" || parameter == "shared_memory_region" ||
         parameter == "classification";
}

template <typename Owner>
bool HasRefusedParameter(const Owner& owner) {
  for (const auto& [name, value] : owner.parameters()) {
    if (IsRefused(name)) return true;
  }
  return false;
}

// The elements of all inputs; nullopt if the request must be refused.
std::optional<std::vector<Elements>> Read(const ModelInferRequest& request) {
  const bool raw = request.raw_input_contents_size() > 0;
  if (raw && request.raw_input_contents_size() != request.inputs_size()) return std::nullopt;
  std::vector<Elements> inputs;
  std::set<std::string> names;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const Input& input = request.inputs(i);
    const DataType dtype = InferDataType(input.datatype());
    if (dtype == DT_INVALID || !names.insert(input.name()).second) return std::nullopt;
    const auto elements = raw ? RawOf(request.raw_input_contents(i), dtype) : TypedOf(input, dtype);
    if (!elements || !Fits(input, elements->size())) return std::nullopt;
    if (!raw && TypedCount(input) != static_cast<int>(elements->size())) return std::nullopt;
    inputs.push_back(*elements);
  }
  return inputs;
}

// Whether server/wire may refuse a request that Read() accepts, because of a parameter, or because
// it has both typed and raw contents. This is approximate: the parsed message shows neither
// empty typed contents nor parameter values that later ones override.
bool MayBeRefused(const ModelInferRequest& request) {
  bool may = HasRefusedParameter(request);
  for (const auto& [name, value] : request.parameters()) may = may || name == kSignatureParameter;
  for (const auto& output : request.outputs()) may = may || HasRefusedParameter(output);
  for (const Input& input : request.inputs()) {
    may = may || HasRefusedParameter(input);
    may = may || (request.raw_input_contents_size() > 0 && input.has_contents());
  }
  return may;
}

Elements ElementsOf(const Column& column) {
  if (column.dtype == DT_STRING) return fuzz::StringsOf(column);
  int64_t count = 0;
  Expect(ElementCount(column, &count).ok(), "an accepted shape is invalid");
  const size_t size = ElementSize(column.dtype);
  std::string memory(count * size, '?');
  const Status status = CopyValues(column, count, memory.data());
  const bool is_wrong_bool = status.message.find("a bool is 0 or 1") != std::string::npos;
  Expect(status.ok() || (column.dtype == DT_BOOL && is_wrong_bool), status.message);
  Elements elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(memory.substr(i * size, size));
  return elements;
}

void Compare(const DecodedRequest& request, const ModelInferRequest& expected,
             const std::vector<Elements>& elements) {
  Expect(request.model_spec.name == expected.model_name(), "model_name");
  Expect(request.id == expected.id(), "id");
  Expect(request.columns().size() == elements.size(), "number of inputs");
  for (size_t i = 0; i < elements.size(); ++i) {
    const Column& column = request.columns()[i];
    const Input& input = expected.inputs(static_cast<int>(i));
    Expect(column.name == input.name(), "name");
    Expect(column.dims == std::vector<int64_t>(input.shape().begin(), input.shape().end()), "dims");
    Expect(ElementsOf(column) == elements[i], "values of " + input.datatype());
  }
  Expect(request.output_filter.size() == static_cast<size_t>(expected.outputs_size()), "outputs");
  for (int i = 0; i < expected.outputs_size(); ++i) {
    Expect(request.output_filter[i] == expected.outputs(i).name(), "an output's name");
  }
}

void RunOne(const std::string& message, uint8_t slicing) {
  static auto* const request = new DecodedRequest();
  const fuzz::Slices slices(message, slicing);
  const Status status = DecodeInferRequest(slices.bytes(), request);
  ModelInferRequest parsed;
  if (!parsed.ParseFromString(message)) return Expect(!status.ok(), "not malformed for us");
  const bool called_malformed = status.message.rfind("malformed", 0) == 0;
  Expect(!called_malformed && status.code != StatusCode::kInternal, status.message);
  const auto expected = Read(parsed);
  Expect(expected || !status.ok(), "accepted: " + parsed.ShortDebugString());
  if (status.ok()) return Compare(*request, parsed, *expected);
  Expect(!expected || MayBeRefused(parsed), status.message);
  Expect(status.code == StatusCode::kInvalidArgument, status.message);
  const Status again = DecodeInferRequest(Bytes(message), request);
  Expect(again.message == status.message, again.message + " became " + status.message);
}

}  // namespace
}  // namespace colcast

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // suppresses protobuf's log lines on invalid UTF-8
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  colcast::RunOne({reinterpret_cast<const char*>(data) + 1, size - 1}, data[0]);
  return 0;
}
