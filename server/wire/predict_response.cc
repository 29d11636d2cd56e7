#include "server/wire/predict_response.h"

#include <cstring>

#include "server/wire/column.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"

namespace colcast {
namespace {

constexpr uint32_t kTensorContent = 4;

size_t LengthDelimitedSize(size_t size) { return VarintSize(size) + size; }

// The size of a string field with a one-byte tag; 0 if the string is empty, since it is then
// omitted.
size_t StringFieldSize(std::string_view text) {
  return text.empty() ? 0 : 1 + LengthDelimitedSize(text.size());
}

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
  for (int64_t dim : dims) size += 1 + LengthDelimitedSize(DimSize(dim));
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
        size += tag_size + LengthDelimitedSize(output.string_at(output.data, i).size());
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
  sizes.tensor = 1 + VarintSize(output.dtype) + 1 + LengthDelimitedSize(sizes.shape);
  if (sizes.form == Form::kStringRecords) {
    sizes.tensor += sizes.body;
  } else if (sizes.form != Form::kNothing) {
    sizes.tensor += VarintSize(MakeTag(sizes.field, kLengthType)) + LengthDelimitedSize(sizes.body);
  }
  sizes.entry = 1 + LengthDelimitedSize(output.name.size()) + 1 + LengthDelimitedSize(sizes.tensor);
  return sizes;
}

size_t VersionSize(int64_t version) {
  return version == 0 ? 0 : 1 + VarintSize(static_cast<uint64_t>(version));
}

size_t ModelSpecSize(const PredictResponse& response) {
  return StringFieldSize(response.model_name) + 1 +
         LengthDelimitedSize(VersionSize(response.version)) +
         StringFieldSize(response.signature_name);
}

class Writer {
 public:
  explicit Writer(uint8_t* out) : out_(out) {}

  void Entry(const OutputColumn& output, const EntrySizes& sizes) {
    Length(1, sizes.entry);
    Length(1, output.name.size());
    Raw(output.name.data(), output.name.size());
    Length(2, sizes.tensor);
    Number(1, output.dtype);
    Length(2, sizes.shape);
    for (int64_t dim : output.dims) {
      Length(2, DimSize(dim));
      if (dim != 0) Number(1, static_cast<uint64_t>(dim));
    }
    Elements(output, sizes);
  }

  void ModelSpec(const PredictResponse& response) {
    Length(2, ModelSpecSize(response));
    StringField(1, response.model_name);
    Length(2, VersionSize(response.version));
    if (response.version != 0) Number(1, static_cast<uint64_t>(response.version));
    StringField(3, response.signature_name);
  }

 private:
  void Elements(const OutputColumn& output, const EntrySizes& sizes) {
    switch (sizes.form) {
      case Form::kNothing:
        return;
      case Form::kMemory:
        Length(sizes.field, sizes.body);
        return Raw(output.data, sizes.body);
      case Form::kVarints:
        Length(sizes.field, sizes.body);
        return ForEachVarint(output, sizes.count, [this](uint64_t value) { Varint(value); });
      case Form::kStringRecords:
        for (int64_t i = 0; i < sizes.count; ++i) {
          const std::string_view text = output.string_at(output.data, i);
          Length(sizes.field, text.size());
          Raw(text.data(), text.size());
        }
        return;
      case Form::kStringList:
        Length(sizes.field, sizes.body);
        for (int64_t i = 0; i < sizes.count; ++i) {
          Varint(output.string_at(output.data, i).size());
        }
        for (int64_t i = 0; i < sizes.count; ++i) {
          const std::string_view text = output.string_at(output.data, i);
          Raw(text.data(), text.size());
        }
        return;
    }
  }

  void StringField(uint32_t field, std::string_view text) {
    if (text.empty()) return;
    Length(field, text.size());
    Raw(text.data(), text.size());
  }

  void Length(uint32_t field, size_t size) {
    Varint(MakeTag(field, kLengthType));
    Varint(size);
  }

  void Number(uint32_t field, uint64_t value) {
    Varint(MakeTag(field, kVarintType));
    Varint(value);
  }

  void Varint(uint64_t value) { out_ = WriteVarint(value, out_); }

  void Raw(const void* data, size_t size) {
    if (size > 0) std::memcpy(out_, data, size);
    out_ += size;
  }

  uint8_t* out_;
};

}  // namespace

Status CheckPredictResponse(const PredictResponse& response) {
  for (const OutputColumn& output : response.outputs) {
    if (ValueFieldOf(output.dtype) == ValueField::kNone) {
      return Internal("output ", Quoted(output.name), ": ", DataTypeName(output.dtype),
                      " cannot be sent");
    }
  }
  return OkStatus();
}

size_t PredictResponseSize(const PredictResponse& response) {
  size_t size = 1 + LengthDelimitedSize(ModelSpecSize(response));
  for (const OutputColumn& output : response.outputs) {
    size += 1 + LengthDelimitedSize(Measure(output, response.encoding).entry);
  }
  return size;
}

void WritePredictResponse(const PredictResponse& response, uint8_t* out) {
  Writer writer(out);
  for (const OutputColumn& output : response.outputs) {
    const EntrySizes sizes = Measure(output, response.encoding);
    writer.Entry(output, sizes);
  }
  writer.ModelSpec(response);
}

}  // namespace colcast
