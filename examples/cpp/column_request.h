// Writes a tensorflow.serving.PredictRequest directly from arrays, as docs/wire.md describes.
//
// Each feature is a column: an item feature has a row per candidate, a user feature one row. Rows
// that several candidates share are sent once, with the index row_to_DOMAIN. Values are in
// row-major order.
#ifndef COLCAST_EXAMPLES_CPP_COLUMN_REQUEST_H_
#define COLCAST_EXAMPLES_CPP_COLUMN_REQUEST_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace columns {

using Shape = std::span<const int64_t>;

class ColumnRequest {
 public:
  // Begins a request to a model's signature, such as "columnar".
  ColumnRequest(std::string_view model, std::string_view signature);

  // These functions add a column. They throw std::invalid_argument if the number of values does not
  // match the shape.
  void Int64(std::string_view name, std::span<const int64_t> values, Shape shape);
  void Float32(std::string_view name, std::span<const float> values, Shape shape);
  void Strings(std::string_view name, std::span<const std::string> values, Shape shape);

  // Adds the index of a domain ("user", "shop"): for each candidate, its row of that domain.
  void RowTo(std::string_view domain, std::span<const int64_t> rows);

  // The encoded message.
  const std::string& bytes() const { return message_; }

 private:
  // Adds a column of a type that has the same bytes in the message as in memory.
  template <typename T>
  void Content(std::string_view name, int dtype, std::span<const T> values, Shape shape);
  void Input(std::string_view name, int dtype, std::string_view body, size_t count, Shape shape);

  std::string message_;
};

}  // namespace columns

#endif  // COLCAST_EXAMPLES_CPP_COLUMN_REQUEST_H_
