#include "column_request.h"

#include <bit>
#include <stdexcept>

namespace columns {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor_content is little-endian");

constexpr int kFloat = 1;
constexpr int kString = 7;
constexpr int kInt64 = 9;

void Varint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

void Integer(int number, uint64_t value, std::string* to) {
  Varint(number << 3, to);
  Varint(value, to);
}

void Field(int number, std::string_view content, std::string* to) {
  Varint(number << 3 | 2, to);
  Varint(content.size(), to);
  to->append(content);
}

}  // namespace

ColumnRequest::ColumnRequest(std::string_view model, std::string_view signature) {
  std::string spec;
  Field(1, model, &spec);
  Field(3, signature, &spec);
  Field(1, spec, &message_);
}

void ColumnRequest::Int64(std::string_view name, std::span<const int64_t> values, Shape shape) {
  Content(name, kInt64, values, shape);
}

void ColumnRequest::Float32(std::string_view name, std::span<const float> values, Shape shape) {
  Content(name, kFloat, values, shape);
}

void ColumnRequest::Strings(std::string_view name, std::span<const std::string> values,
                            Shape shape) {
  std::string body;
  for (const std::string& value : values) Field(8, value, &body);  // string_val
  Input(name, kString, body, values.size(), shape);
}

void ColumnRequest::RowTo(std::string_view domain, std::span<const int64_t> rows) {
  const int64_t count = static_cast<int64_t>(rows.size());
  Int64("row_to_" + std::string(domain), rows, {&count, 1});
}

template <typename T>
void ColumnRequest::Content(std::string_view name, int dtype, std::span<const T> values,
                            Shape shape) {
  std::string body;
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  if (!bytes.empty()) Field(4, bytes, &body);  // tensor_content
  Input(name, dtype, body, values.size(), shape);
}

void ColumnRequest::Input(std::string_view name, int dtype, std::string_view body, size_t count,
                          Shape shape) {
  std::string dims;
  size_t size = 1;
  for (const int64_t rows : shape) {
    std::string dim;
    Integer(1, rows, &dim);
    Field(2, dim, &dims);
    size *= rows;
  }
  if (size != count) {
    throw std::invalid_argument("column " + std::string(name) + ": " + std::to_string(count) +
                                " values do not fill its shape of " + std::to_string(size));
  }
  std::string tensor;
  Integer(1, dtype, &tensor);
  Field(2, dims, &tensor);
  tensor += body;
  std::string entry;
  Field(1, name, &entry);
  Field(2, tensor, &entry);
  Field(2, entry, &message_);
}

}  // namespace columns
