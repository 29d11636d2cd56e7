
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/data_type.h"
#include "server/wire/infer.h"
#include "server/wire/writer.h"

namespace colcast {
namespace {

// The fields of ModelInferResponse.
constexpr uint32_t kModelName = 1;
constexpr uint32_t kModelVersion = 2;
constexpr uint32_t kId = 3;
constexpr uint32_t kOutputs = 5;
constexpr uint32_t kRawOutputContents = 6;

// The sizes of an InferOutputTensor's shape, of the whole message, and of its raw contents.
struct OutputSizes {
  size_t shape = 0;
  size_t tensor = 0;
  size_t raw = 0;
};

OutputSizes Measure(const OutputColumn& output) {
  OutputSizes sizes;
  for (int64_t dim : output.dims) sizes.shape += VarintSize(static_cast<uint64_t>(dim));
  sizes.tensor = TextFieldSize(1, output.name) + TextFieldSize(2, InferDatatypeName(output.dtype)) +
                 (sizes.shape == 0 ? 0 : FieldSize(3, sizes.shape));
  const int64_t count = output.ElementCount();
  if (output.dtype != DT_STRING) {
    sizes.raw = count * ElementSize(output.dtype);
    return sizes;
  }
  sizes.raw = count * sizeof(RawStringLength);
  for (int64_t i = 0; i < count; ++i) sizes.raw += output.string_at(output.data, i).size();
  return sizes;
}

// Writes an InferOutputTensor's name, datatype and shape.
void WriteTensor(const OutputColumn& output, const OutputSizes& sizes, Writer* writer) {
  writer->Head(kOutputs, sizes.tensor);
  writer->TextField(1, output.name);
  writer->TextField(2, InferDatatypeName(output.dtype));
  if (sizes.shape == 0) return;
  writer->Head(3, sizes.shape);
  for (int64_t dim : output.dims) writer->Varint(static_cast<uint64_t>(dim));
}

void WriteRaw(const OutputColumn& output, const OutputSizes& sizes, Writer* writer) {
  writer->Head(kRawOutputContents, sizes.raw);
  if (output.dtype != DT_STRING) return writer->Raw(output.data, sizes.raw);
  const int64_t count = output.ElementCount();
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view text = output.string_at(output.data, i);
    const auto length = static_cast<RawStringLength>(text.size());
    writer->Raw(&length, sizeof(length));
    writer->Raw(text.data(), text.size());
  }
}

}  // namespace

Status WriteInferResponse(const PredictResponse& response, const MakeBuffer& make) {
  const std::string version = std::to_string(response.version);
  size_t size = TextFieldSize(kModelName, response.model_name) +
                TextFieldSize(kModelVersion, version) + TextFieldSize(kId, response.id);
  std::vector<OutputSizes> all;
  for (const OutputColumn& output : response.outputs) {
    if (InferDatatypeName(output.dtype).empty()) {
      return Internal("output ", Quoted(output.name), ": the Open Inference Protocol has no ",
                      DataTypeName(output.dtype), "; ask for it by Predict");
    }
    all.push_back(Measure(output));
    size += FieldSize(kOutputs, all.back().tensor) + FieldSize(kRawOutputContents, all.back().raw);
  }
  uint8_t* buffer = nullptr;
  if (Status status = make(size, &buffer); !status.ok()) return status;
  Writer writer(buffer);
  writer.TextField(kModelName, response.model_name);
  writer.TextField(kModelVersion, version);
  writer.TextField(kId, response.id);
  for (size_t i = 0; i < all.size(); ++i) WriteTensor(response.outputs[i], all[i], &writer);
  for (size_t i = 0; i < all.size(); ++i) WriteRaw(response.outputs[i], all[i], &writer);
  return OkStatus();
}

}  // namespace colcast
