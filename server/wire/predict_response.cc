#include "server/wire/predict_response.h"

#include <array>
#include <cstring>
#include <vector>

#include "server/wire/column.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"
#include "server/wire/writer.h"

namespace colcast {
namespace {

constexpr uint32_t kTensorContent = 4;

// Calls visit(uint64_t varint) for each of `count` integers, encoded as TensorFlow fills int_val
// and similar fields: negative numbers take all 64 bits, 4-bit and 2-bit numbers lose their upper
// bits.
template <typename Visit>
void ForEachVarint(const OutputColumn& output, int64_t count, Visit&& visit) {
  const auto each = [&](auto element, auto convert) {
    const auto* at = static_cast<const uint8_t*>(output.data);
    for (int64_t i = 0; i < count; ++i, at += sizeof(element)) {
      std::memcpy(&element, at, sizeof(element));
      visit(static_cast<uint64_t>(convert(element)));
    }
  };
  const auto same = [](auto value) { return value; };
  const auto sign_extended = [](auto value) { return static_cast<int64_t>(value); };
  switch (output.dtype) {
    case DT_INT8:
    case DT_QINT8:
      return each(int8_t{}, sign_extended);
    case DT_INT16:
    case DT_QINT16:
      return each(int16_t{}, sign_extended);
    case DT_INT32:
    case DT_QINT32:
      return each(int32_t{}, sign_extended);
    case DT_INT64:
      return each(int64_t{}, same);
    case DT_UINT8:
    case DT_QUINT8:
      return each(uint8_t{}, same);
    case DT_UINT16:
    case DT_QUINT16:
    case DT_HALF:
    case DT_BFLOAT16:
      return each(uint16_t{}, same);
    case DT_UINT32:
      return each(uint32_t{}, same);
    case DT_UINT64:
      return each(uint64_t{}, same);
    case DT_BOOL:
      return each(uint8_t{}, [](uint8_t value) { return value != 0; });
    case DT_INT4:
      return each(uint8_t{}, [](uint8_t value) { return int64_t{(value & 15) ^ 8} - 8; });
    case DT_UINT4:
      return each(uint8_t{}, [](uint8_t value) { return value & 15; });
    case DT_INT2:
      return each(uint8_t{}, [](uint8_t value) { return int64_t{(value & 3) ^ 2} - 2; });
    case DT_UINT2:
      return each(uint8_t{}, [](uint8_t value) { return value & 3; });
    default:
      return;
  }
}

// How the elements of one output are encoded.
enum class Form { kNothing, kMemory, kVarints, kStringRecords, kStringList };

// The sizes of one entry of PredictResponse.outputs, innermost first.
struct EntrySizes {
  int64_t count;
  Form form;
  uint32_t field;  // number of the field that holds the elements
  size_t body;     // bytes of the field without tag and length; of all records for kStringRecords
  size_t shape;
  size_t tensor;
  size_t entry;
};

size_t DimSize(int64_t dim) { return dim == 0 ? 0 : 1 + VarintSize(static_cast<uint64_t>(dim)); }

size_t ShapeSize(Span<int64_t> dims) {
  size_t size = 0;
  for (int64_t dim : dims) size += 1 + DelimitedSize(DimSize(dim));
  return size;
}

Form FormOf(const OutputColumn& output, int64_t count, TensorEncoding encoding) {
  if (count == 0) return Form::kNothing;
  const bool content = encoding == TensorEncoding::kTensorContent;
  if (output.dtype == DT_STRING) return content ? Form::kStringList : Form::kStringRecords;
  if (content) return Form::kMemory;
  switch (ValueFieldOf(output.dtype)) {
    case ValueField::kFloat:
    case ValueField::kDouble:
    case ValueField::kScomplex:
    case ValueField::kDcomplex:
    case ValueField::kFloat8:
      return Form::kMemory;
    default:
      return Form::kVarints;
  }
}

size_t BodySize(const OutputColumn& output, int64_t count, Form form) {
  size_t size = 0;
  switch (form) {
    case Form::kNothing:
      return 0;
    case Form::kMemory:
      return count * ElementSize(output.dtype);
    case Form::kVarints:
      ForEachVarint(output, count, [&](uint64_t value) { size += VarintSize(value); });
      return size;
    case Form::kStringRecords:
    case Form::kStringList: {
      const size_t tag_size = form == Form::kStringRecords ? 1 : 0;
      for (int64_t i = 0; i < count; ++i) {
        size += tag_size + DelimitedSize(output.string_at(output.data, i).size());
      }
      return size;
    }
  }
  return size;
}

EntrySizes Measure(const OutputColumn& output, TensorEncoding encoding) {
  EntrySizes sizes;
  sizes.count = output.ElementCount();
  sizes.form = FormOf(output, sizes.count, encoding);
  sizes.field = encoding == TensorEncoding::kTensorContent
                    ? kTensorContent
                    : static_cast<uint32_t>(ValueFieldOf(output.dtype));
  sizes.body = BodySize(output, sizes.count, sizes.form);
  sizes.shape = ShapeSize(output.dims);
  sizes.tensor = 1 + VarintSize(output.dtype) + 1 + DelimitedSize(sizes.shape);
  if (sizes.form == Form::kStringRecords) {
    sizes.tensor += sizes.body;
  } else if (sizes.form != Form::kNothing) {
    sizes.tensor += VarintSize(MakeTag(sizes.field, kLengthType)) + DelimitedSize(sizes.body);
  }
  sizes.entry = 1 + DelimitedSize(output.name.size()) + 1 + DelimitedSize(sizes.tensor);
  return sizes;
}

size_t VersionSize(int64_t version) {
  return version == 0 ? 0 : 1 + VarintSize(static_cast<uint64_t>(version));
}

size_t ModelSpecSize(const PredictResponse& response) {
  return TextFieldSize(1, response.model_name) + 1 + DelimitedSize(VersionSize(response.version)) +
         TextFieldSize(3, response.signature_name);
}

void WriteElements(const OutputColumn& output, const EntrySizes& sizes, Writer* writer) {
  const auto text_at = [&](int64_t index) { return output.string_at(output.data, index); };
  switch (sizes.form) {
    case Form::kNothing:
      return;
    case Form::kMemory:
      writer->Head(sizes.field, sizes.body);
      return writer->Raw(output.data, sizes.body);
    case Form::kVarints:
      writer->Head(sizes.field, sizes.body);
      return ForEachVarint(output, sizes.count, [&](uint64_t value) { writer->Varint(value); });
    case Form::kStringRecords:
      for (int64_t i = 0; i < sizes.count; ++i) writer->Field(sizes.field, text_at(i));
      return;
    case Form::kStringList:
      writer->Head(sizes.field, sizes.body);
      for (int64_t i = 0; i < sizes.count; ++i) writer->Varint(text_at(i).size());
      for (int64_t i = 0; i < sizes.count; ++i) {
        writer->Raw(text_at(i).data(), text_at(i).size());
      }
      return;
  }
}

void WriteEntry(const OutputColumn& output, const EntrySizes& sizes, Writer* writer) {
  writer->Head(1, sizes.entry);
  writer->Field(1, output.name);
  writer->Head(2, sizes.tensor);
  writer->Number(1, output.dtype);
  writer->Head(2, sizes.shape);
  for (int64_t dim : output.dims) {
    writer->Head(2, DimSize(dim));
    if (dim != 0) writer->Number(1, static_cast<uint64_t>(dim));
  }
  WriteElements(output, sizes, writer);
}

void WriteModelSpec(const PredictResponse& response, Writer* writer) {
  writer->Head(2, ModelSpecSize(response));
  writer->TextField(1, response.model_name);
  writer->Head(2, VersionSize(response.version));
  if (response.version != 0) writer->Number(1, static_cast<uint64_t>(response.version));
  writer->TextField(3, response.signature_name);
}

}  // namespace

Status WritePredictResponse(const PredictResponse& response, const MakeBuffer& make) {
  constexpr size_t kFew = 8;
  const size_t count = response.outputs.size();
  std::array<EntrySizes, kFew> few;
  std::vector<EntrySizes> many(count > kFew ? count : 0);
  EntrySizes* const sizes = many.empty() ? few.data() : many.data();
  size_t size = 1 + DelimitedSize(ModelSpecSize(response));
  for (size_t i = 0; i < count; ++i) {
    const OutputColumn& output = response.outputs[i];
    if (ValueFieldOf(output.dtype) == ValueField::kNone) {
      return Internal("output ", Quoted(output.name), ": ", DataTypeName(output.dtype),
                      " cannot be sent");
    }
    sizes[i] = Measure(output, response.encoding);
    size += 1 + DelimitedSize(sizes[i].entry);
  }
  uint8_t* buffer = nullptr;
  if (Status status = make(size, &buffer); !status.ok()) return status;
  Writer writer(buffer);
  for (size_t i = 0; i < count; ++i) WriteEntry(response.outputs[i], sizes[i], &writer);
  WriteModelSpec(response, &writer);
  return OkStatus();
}

}  // namespace colcast
