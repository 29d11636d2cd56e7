#include "server/wire/infer_response.h"

#include <cstring>
#include <string>
#include <string_view>

#include "server/wire/data_type.h"
#include "server/wire/infer_tensor.h"
#include "server/wire/reader.h"

namespace colcast {
namespace {

using StringLength = uint32_t;

// The fields of ModelInferResponse.
constexpr uint32_t kModelName = 1;
constexpr uint32_t kModelVersion = 2;
constexpr uint32_t kId = 3;
constexpr uint32_t kOutputs = 5;
constexpr uint32_t kRawOutputContents = 6;

// The size of a field whose tag takes one byte, as all tags here do.
size_t FieldSize(size_t body) { return 1 + VarintSize(body) + body; }
size_t TextSize(std::string_view text) { return text.empty() ? 0 : FieldSize(text.size()); }

size_t ShapeSize(const OutputColumn& output) {
  size_t size = 0;
  for (int64_t dim : output.dims) size += VarintSize(static_cast<uint64_t>(dim));
  return size;
}

size_t TensorSize(const OutputColumn& output) {
  const size_t shape = ShapeSize(output);
  return TextSize(output.name) + TextSize(InferDatatypeName(output.dtype)) +
         (shape == 0 ? 0 : FieldSize(shape));
}

uint8_t* WriteHead(uint32_t field, size_t size, uint8_t* out) {
  return WriteVarint(size, WriteVarint(MakeTag(field, kLengthType), out));
}

uint8_t* WriteText(uint32_t field, std::string_view text, uint8_t* out) {
  if (text.empty()) return out;
  out = WriteHead(field, text.size(), out);
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// Writes an InferOutputTensor's name, datatype and shape.
uint8_t* WriteTensor(const OutputColumn& output, uint8_t* out) {
  out = WriteHead(kOutputs, TensorSize(output), out);
  out = WriteText(1, output.name, out);
  out = WriteText(2, InferDatatypeName(output.dtype), out);
  if (const size_t shape = ShapeSize(output); shape > 0) {
    out = WriteHead(3, shape, out);
    for (int64_t dim : output.dims) out = WriteVarint(static_cast<uint64_t>(dim), out);
  }
  return out;
}

}  // namespace

Status CheckInferResponse(const PredictResponse& response) {
  for (const OutputColumn& output : response.outputs) {
    if (InferDatatypeName(output.dtype).empty()) {
      return Internal("output ", Quoted(output.name), ": the Open Inference Protocol has no ",
                      DataTypeName(output.dtype), "; ask for it by Predict");
    }
  }
  return OkStatus();
}

size_t RawSize(const OutputColumn& output) {
  const int64_t count = output.ElementCount();
  if (output.dtype != DT_STRING) return count * ElementSize(output.dtype);
  size_t size = count * sizeof(StringLength);
  for (int64_t i = 0; i < count; ++i) size += output.string_at(output.data, i).size();
  return size;
}

uint8_t* WriteRaw(const OutputColumn& output, uint8_t* out) {
  const int64_t count = output.ElementCount();
  if (output.dtype != DT_STRING) {
    const size_t size = count * ElementSize(output.dtype);
    if (size > 0) std::memcpy(out, output.data, size);
    return out + size;
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view text = output.string_at(output.data, i);
    const auto length = static_cast<StringLength>(text.size());
    std::memcpy(out, &length, sizeof(length));
    std::memcpy(out + sizeof(length), text.data(), text.size());
    out += sizeof(length) + text.size();
  }
  return out;
}

size_t InferResponseSize(const PredictResponse& response) {
  size_t size = TextSize(response.model_name) + TextSize(std::to_string(response.version)) +
                TextSize(response.id);
  for (const OutputColumn& output : response.outputs) {
    size += FieldSize(TensorSize(output)) + FieldSize(RawSize(output));
  }
  return size;
}

void WriteInferResponse(const PredictResponse& response, uint8_t* out) {
  out = WriteText(kModelName, response.model_name, out);
  out = WriteText(kModelVersion, std::to_string(response.version), out);
  out = WriteText(kId, response.id, out);
  for (const OutputColumn& output : response.outputs) out = WriteTensor(output, out);
  for (const OutputColumn& output : response.outputs) {
    out = WriteRaw(output, WriteHead(kRawOutputContents, RawSize(output), out));
  }
}

}  // namespace colcast
