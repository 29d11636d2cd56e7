#include "server/inference/input_bytes.h"

#include <algorithm>
#include <string_view>

#include "server/wire/data_type.h"

namespace colcast::inference {
namespace {

constexpr double kMost = 1e15;
// Size of a tensorflow::tstring, not counting the string's bytes.
constexpr double kStringObject = 24;
constexpr double kOfARow = 16;  // charged per row, independent of its columns

double BytesOfElement(const Column& column) {
  return column.dtype == DT_STRING ? kStringObject : static_cast<double>(ElementSize(column.dtype));
}

int64_t AtMost(double bytes) { return static_cast<int64_t>(std::min(bytes, kMost)); }

bool IsRepeated(const Column& column) { return !column.dims.empty() && column.dims[0] == 1; }

double ElementsOfRow(const Column& column) {
  double elements = 1;
  for (size_t i = 1; i < column.dims.size(); ++i) {
    elements *= static_cast<double>(std::max<int64_t>(0, column.dims[i]));
  }
  return elements;
}

// Tries `place` first, because most requests send columns in the same order.
const Column* FindColumn(const DecodedRequest& request, size_t place, std::string_view name) {
  const Span<Column> columns = request.columns();
  if (place < columns.size() && columns[place].name == name) return &columns[place];
  return request.Find(name);
}

// Bytes of padding for the column at `place` in the first request.
double PaddingOfColumn(const std::vector<RequestOfRows>& requests, size_t place) {
  const Column& first = requests[0].request->columns()[place];
  double longest = 0, rows = 0, elements = 0;
  for (const RequestOfRows& one : requests) {
    const Column* const column = FindColumn(*one.request, place, first.name);
    if (column == nullptr || column->dims.empty()) continue;
    const auto its_rows =
        static_cast<double>(IsRepeated(*column) ? one.rows : std::max<int64_t>(0, column->dims[0]));
    const double of_row = ElementsOfRow(*column);
    longest = std::max(longest, of_row);
    rows += its_rows;
    elements += its_rows * of_row;
  }
  return (rows * longest - elements) * BytesOfElement(first);
}

double BytesOfColumn(const Column& column, int64_t rows) {
  double bytes = ElementsOfRow(column) * BytesOfElement(column);
  if (!column.dims.empty()) bytes *= static_cast<double>(std::max<int64_t>(0, column.dims[0]));
  if (column.dtype == DT_STRING) bytes += static_cast<double>(column.values.received_bytes());
  return IsRepeated(column) ? bytes * static_cast<double>(rows) : bytes;
}

}  // namespace

int64_t InputBytes(const DecodedRequest& request, int64_t rows) {
  double all = kOfARow * static_cast<double>(rows);
  for (const Column& column : request.columns()) all += BytesOfColumn(column, rows);
  return AtMost(all);
}

std::string LargestInput(const DecodedRequest& request, int64_t rows) {
  const Span<Column> columns = request.columns();
  const Column* const largest =
      std::max_element(columns.begin(), columns.end(), [rows](const Column& a, const Column& b) {
        return BytesOfColumn(a, rows) < BytesOfColumn(b, rows);
      });
  if (largest == columns.end()) return "";
  return "input \"" + Readable(largest->name) + "\" of shape " + ShapeName(largest->dims);
}

int64_t PaddingBytes(const std::vector<RequestOfRows>& requests) {
  double all = 0;
  const Span<Column> columns = requests[0].request->columns();
  for (size_t place = 0; place < columns.size(); ++place) {
    if (columns[place].dims.size() >= 2) all += PaddingOfColumn(requests, place);
  }
  return AtMost(all);
}

}  // namespace colcast::inference
