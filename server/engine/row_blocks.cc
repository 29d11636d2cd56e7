#include "server/engine/row_blocks.h"

#include <algorithm>
#include <cstring>

#include "server/engine/rows.h"
#include "server/wire/column.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::tstring;

int64_t InnerElements(absl::Span<const int64_t> dims) {
  int64_t elements = 1;
  for (size_t d = 1; d < dims.size(); ++d) elements *= dims[d];
  return elements;
}

// The total number of rows, then the largest size of each inner dimension.
Dims StackedDims(absl::Span<const RowBlock> blocks) {
  const absl::Span<const int64_t> first = blocks[0].column->dims();
  Dims dims(first.begin(), first.end());
  dims[0] = 0;
  for (const RowBlock& block : blocks) {
    const absl::Span<const int64_t> own = block.column->dims();
    dims[0] += block.rows;
    for (size_t d = 1; d < dims.size(); ++d) dims[d] = std::max(dims[d], own[d]);
  }
  return dims;
}

absl::Status MakeOfDims(tensorflow::DataType dtype, absl::Span<const int64_t> dims, Tensor* out) {
  tensorflow::TensorShape shape;
  absl::Status status = tensorflow::TensorShape::BuildTensorShape(dims, &shape);
  return status.ok() ? MakeTensor(dtype, shape, out) : status;
}

// Repeats the `count` elements at `at` until there are `all` elements.
void Repeat(int64_t at, int64_t count, int64_t all, Tensor* out) {
  if (count == 0) return;
  for (int64_t done = count; done < all;) {
    const int64_t more = std::min(done, all - done);
    CopyElements(*out, at, more, at + done, out);
    done += more;
  }
}

void FillZeros(int64_t at, int64_t count, Tensor* out) {
  if (out->dtype() == tensorflow::DT_STRING || count == 0) return;  // new strings are empty
  const size_t size = tensorflow::DataTypeSize(out->dtype());
  std::memset(static_cast<char*>(out->data()) + at * size, 0, count * size);
}

// Copies a row with inner dimensions `from`, whose elements begin at `row`, into the corner of a
// row with dimensions `to`.
void CopyPadded(const Tensor& elements, int64_t row, absl::Span<const int64_t> from,
                absl::Span<const int64_t> to, int64_t at, Tensor* out) {
  if (from.size() <= 1) {
    CopyElements(elements, row, from.empty() ? 1 : from[0], at, out);
    return;
  }
  const int64_t from_step = InnerElements(from);
  const int64_t to_step = InnerElements(to);
  for (int64_t i = 0; i < from[0]; ++i) {
    CopyPadded(elements, row + i * from_step, from.subspan(1), to.subspan(1), at + i * to_step,
               out);
  }
}

// The destination of a block: its first element, and the inner dimensions of a row.
struct Target {
  absl::Span<const int64_t> dims;
  int64_t row_elements;
  int64_t at;
};

// Writes rows that need padding, or that do not begin at the column's first row.
absl::Status WritePadded(const RowBlock& block, const Target& target, PadWith pad, Tensor* out) {
  const Input& column = *block.column;
  const absl::Span<const int64_t> dims = column.dims();
  Tensor elements;
  if (absl::Status status = MakeOfDims(column.dtype(), dims, &elements); !status.ok()) {
    return status;
  }
  if (absl::Status status = column.Decode(&elements, 0); !status.ok()) return status;
  const int64_t rows = block.repeated ? 1 : block.rows;
  if (pad == PadWith::kFirstValue && elements.NumElements() > 0 && target.row_elements > 0) {
    CopyElements(elements, 0, 1, target.at, out);
    Repeat(target.at, 1, rows * target.row_elements, out);
  } else {
    FillZeros(target.at, rows * target.row_elements, out);
  }
  const int64_t own_elements = InnerElements(dims);
  for (int64_t row = 0; row < rows && own_elements > 0; ++row) {
    CopyPadded(elements, (block.first + row) * own_elements, dims.subspan(1),
               target.dims.subspan(1), target.at + row * target.row_elements, out);
  }
  return absl::OkStatus();
}

// Copies elements [first, first + count) of a column that IsLaidOut().
void CopyLaidOut(const Input& column, int64_t first, int64_t count, int64_t at, Tensor* out) {
  const ColumnValues& values = column.column().values;
  if (column.dtype() == tensorflow::DT_STRING) {
    StringFiller filler(static_cast<tstring*>(out->data()) + at);
    for (int64_t i = 0; i < count; ++i) filler.Set(i, values.strings[first + i]);
    return;
  }
  const size_t size = tensorflow::DataTypeSize(column.dtype());
  values.tensor_content.Sub(first * size, count * size)
      .CopyTo(static_cast<char*>(out->data()) + at * size);
}

absl::Status WriteBlock(const RowBlock& block, const Target& target, PadWith pad, Tensor* out) {
  const absl::Span<const int64_t> dims = block.column->dims();
  const bool is_padded = dims.subspan(1) != target.dims.subspan(1);
  const int64_t rows = block.repeated ? 1 : block.rows;
  absl::Status status = absl::OkStatus();
  if (!is_padded && rows == dims[0]) {
    status = block.column->Decode(out, target.at);
  } else if (!is_padded && IsLaidOut(*block.column)) {
    CopyLaidOut(*block.column, block.first * target.row_elements, rows * target.row_elements,
                target.at, out);
  } else {
    status = WritePadded(block, target, pad, out);
  }
  if (status.ok() && block.repeated) {
    Repeat(target.at, target.row_elements, block.rows * target.row_elements, out);
  }
  return status;
}

// Adds up the sizes of strings [first, last).
class SizeOfStrings final : public StringVisitor {
 public:
  SizeOfStrings(int64_t first, int64_t last) : first_(first), last_(last) {}

  void Set(int64_t index, const Bytes& value) override {
    if (index >= first_ && index < last_) bytes_ += static_cast<double>(value.size());
  }
  double bytes() const { return bytes_; }

 private:
  const int64_t first_;
  const int64_t last_;
  double bytes_ = 0;
};

double BytesOfStrings(const Input& column, int64_t first, int64_t count) {
  SizeOfStrings size(first, first + count);
  return VisitStrings(column.column(), column.count(), &size).ok() ? size.bytes() : 0;
}

// Bytes of the text in a block's strings, excluding the tstring objects.
double StringBytes(const RowBlock& block, absl::Span<const int64_t> to, PadWith pad) {
  const Input& column = *block.column;
  const int64_t own = InnerElements(column.dims());
  const double rows = static_cast<double>(block.rows);
  double bytes = block.repeated ? rows * BytesOfStrings(column, block.first * own, own)
                                : BytesOfStrings(column, 0, column.count());
  if (pad == PadWith::kFirstValue && InnerElements(to) > own) {
    bytes += rows * static_cast<double>(InnerElements(to) - own) * BytesOfStrings(column, 0, 1);
  }
  return bytes;
}

}  // namespace

bool IsLaidOut(const Input& column) {
  const ColumnValues& values = column.column().values;
  if (values.stored != nullptr) return false;
  if (column.dtype() == tensorflow::DT_STRING) {
    return values.messages.empty() && values.tensor_content.empty() &&
           static_cast<int64_t>(values.strings.size()) == column.count();
  }
  // Bools must be checked, because a byte may be neither 0 nor 1.
  return column.dtype() != tensorflow::DT_BOOL && !values.tensor_content.empty();
}

double ExtraBytes(absl::Span<const RowBlock> blocks, PadWith pad) {
  const Dims dims = StackedDims(blocks);
  const bool strings = blocks[0].column->dtype() == tensorflow::DT_STRING;
  auto bytes = static_cast<double>(ElementBytes(blocks[0].column->dtype()));
  for (const int64_t dim : dims) bytes *= static_cast<double>(dim);
  for (const RowBlock& block : blocks) {
    if (strings) bytes += StringBytes(block, dims, pad);
    bytes -= static_cast<double>(block.column->WireBytes());
  }
  return bytes;
}

absl::Status StackRows(absl::Span<const RowBlock> blocks, PadWith pad, Tensor* stacked) {
  const Dims dims = StackedDims(blocks);
  absl::Status status = MakeOfDims(blocks[0].column->dtype(), dims, stacked);
  Target target{dims, InnerElements(dims), 0};
  for (const RowBlock& block : blocks) {
    if (!status.ok()) return status;
    if (block.rows == 0) continue;
    status = WriteBlock(block, target, pad, stacked);
    target.at += block.rows * target.row_elements;
  }
  return status;
}

}  // namespace colcast::engine
