#include "server/wire/column_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "server/wire/tensor_values.h"

namespace colcast {
namespace {

// Elements are moved as bytes; those of a string column are views, of which an empty one is zeros.
static_assert(std::is_trivially_copyable_v<Bytes>);

using Dims = std::vector<int64_t>;

size_t StoredSize(DataType dtype) {
  return dtype == DT_STRING ? sizeof(Bytes) : ElementSize(dtype);
}

class ViewWriter final : public StringVisitor {
 public:
  explicit ViewWriter(uint8_t* out) : out_(out) {}
  void Set(int64_t index, const Bytes& value) override {
    last_ = value;
    Write(index);
  }
  void Repeat(int64_t begin, int64_t end) override {
    for (int64_t i = begin; i < end; ++i) Write(i);
  }

 private:
  void Write(int64_t index) { std::memcpy(out_ + index * sizeof(Bytes), &last_, sizeof(Bytes)); }

  uint8_t* const out_;
  Bytes last_;
};

Status WriteElements(const Column& column, int64_t elements, uint8_t* out) {
  if (column.dtype != DT_STRING) return CopyValues(column, elements, out);
  ViewWriter writer(out);
  return VisitStrings(column, elements, &writer);
}

int64_t InnerElements(const Dims& dims) {
  int64_t elements = 1;
  for (size_t d = 1; d < dims.size(); ++d) elements *= dims[d];
  return elements;
}

// Elements repeated: the first one, which is there, to `count`.
void RepeatFirst(uint8_t* out, size_t size, int64_t count) {
  const size_t all = size * std::max<int64_t>(1, count);
  for (size_t done = size; size > 0 && done < all;) {
    const size_t part = std::min(done, all - done);
    std::memcpy(out + done, out, part);
    done += part;
  }
}

// Copies a row of `from` dimensions into the corner of one of `to`, both without the rows.
void CopyPadded(const uint8_t* row, const Dims& from, const Dims& to, size_t size, size_t dim,
                uint8_t* out) {
  if (dim == from.size()) {
    std::memcpy(out, row, size);
    return;
  }
  if (dim + 1 == from.size()) {
    if (from[dim] > 0) std::memcpy(out, row, from[dim] * size);
    return;
  }
  size_t from_step = size;
  size_t to_step = size;
  for (size_t d = dim + 1; d < from.size(); ++d) {
    from_step *= from[d];
    to_step *= to[d];
  }
  for (int64_t i = 0; i < from[dim]; ++i) {
    CopyPadded(row + i * from_step, from, to, size, dim + 1, out + i * to_step);
  }
}

// Writes the block's rows, whose inner dimensions become those of `to`.
Status WriteBlock(const RowBlock& block, const Dims& to, PadWith pad, uint8_t* out) {
  const Dims& from = block.column->dims;
  const size_t size = StoredSize(block.column->dtype);
  const bool same = std::equal(from.begin() + 1, from.end(), to.begin() + 1);
  const bool as_it_is = !block.first_row_only && from[0] == block.rows;
  const size_t row_bytes = InnerElements(to) * size;
  if (same && (as_it_is || from[0] == 1)) {
    Status status = WriteElements(*block.column, block.elements, out);
    if (status.ok() && !as_it_is) RepeatFirst(out, row_bytes, block.rows);
    return status;
  }
  std::vector<uint8_t> elements(block.elements * size);
  if (Status status = WriteElements(*block.column, block.elements, elements.data()); !status.ok()) {
    return status;
  }
  const int64_t rows = as_it_is ? block.rows : 1;
  if (pad == PadWith::kFirstValue && !elements.empty() && row_bytes > 0) {
    std::memcpy(out, elements.data(), size);
    RepeatFirst(out, size, rows * InnerElements(to));
  }
  const size_t from_bytes = InnerElements(from) * size;
  for (int64_t row = 0; row < rows && row_bytes > 0; ++row) {
    CopyPadded(elements.data() + row * from_bytes, from, to, size, 1, out + row * row_bytes);
  }
  if (!as_it_is) RepeatFirst(out, row_bytes, block.rows);
  return OkStatus();
}

// All rows, and the largest of each inner dimension.
Dims JoinedDims(const std::vector<RowBlock>& blocks) {
  Dims dims = blocks[0].column->dims;
  dims[0] = 0;
  for (const RowBlock& block : blocks) {
    dims[0] += block.rows;
    for (size_t d = 1; d < dims.size(); ++d) dims[d] = std::max(dims[d], block.column->dims[d]);
  }
  return dims;
}

}  // namespace

bool IsLaidOut(const Column& column, int64_t elements) {
  const ColumnValues& values = column.values;
  if (column.dtype == DT_STRING) {
    return values.messages.empty() && values.tensor_content.empty() &&
           static_cast<int64_t>(values.strings.size()) == elements;
  }
  return column.dtype != DT_BOOL && !values.tensor_content.empty();  // a bool may be no bool
}

double JoinedBytes(const std::vector<RowBlock>& blocks) {
  auto bytes = static_cast<double>(StoredSize(blocks[0].column->dtype));
  for (const int64_t dim : JoinedDims(blocks)) bytes *= static_cast<double>(dim);
  return bytes;
}

Status JoinRows(std::string_view name, const std::vector<RowBlock>& blocks, PadWith pad,
                DecodedRequest* request) {
  const Dims dims = JoinedDims(blocks);
  const DataType dtype = blocks[0].column->dtype;
  const int64_t row_elements = InnerElements(dims);
  const size_t row_bytes = row_elements * StoredSize(dtype);
  Column* const column = request->AddColumn(name);
  column->dtype = dtype;
  column->dims = dims;
  std::string numbers;
  std::vector<Bytes>& strings = column->values.strings;
  uint8_t* out = nullptr;
  if (dtype == DT_STRING) {
    column->values.count = dims[0] * row_elements;
    strings.resize(column->values.count);
    out = reinterpret_cast<uint8_t*>(strings.data());
  } else {
    numbers.resize(dims[0] * row_bytes);
    out = reinterpret_cast<uint8_t*>(numbers.data());
  }
  for (const RowBlock& block : blocks) {
    if (block.rows == 0) continue;
    if (Status status = WriteBlock(block, dims, pad, out); !status.ok()) return status;
    out += block.rows * row_bytes;
  }
  if (dtype != DT_STRING) {
    column->values.tensor_content = Bytes(request->Keep(std::move(numbers)));
  }
  return OkStatus();
}

void TakeRows(const Column& joined, int64_t first, int64_t rows, DecodedRequest* request) {
  Column* const column = request->AddColumn(joined.name);
  column->dtype = joined.dtype;
  column->dims = joined.dims;
  column->dims[0] = rows;
  const int64_t row_elements = InnerElements(joined.dims);
  if (joined.dtype == DT_STRING) {
    const auto begin = joined.values.strings.begin() + first * row_elements;
    column->values.strings.assign(begin, begin + rows * row_elements);
    column->values.count = rows * row_elements;
  } else {
    const size_t row_bytes = row_elements * ElementSize(joined.dtype);
    column->values.tensor_content =
        joined.values.tensor_content.Sub(first * row_bytes, rows * row_bytes);
  }
}

}  // namespace colcast
