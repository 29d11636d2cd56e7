// A tensorflow.serving.PredictRequest written straight from arrays, as docs/wire.md shows it.
//
// A feature is a column with a row per candidate, the user's with one row. Rows that candidates
// share are sent once, with the index row_to_DOMAIN. Values are row-major.
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

  // Add a column; std::invalid_argument if the values do not fill the shape.
  void Int64(std::string_view name, std::span<const int64_t> values, Shape shape);
  void Float32(std::string_view name, std::span<const float> values, Shape shape);
  void Strings(std::string_view name, std::span<const std::string> values, Shape shape);

  // Adds, for each candidate, its row among those of a domain ("user", "shop").
  void RowTo(std::string_view domain, std::span<const int64_t> rows);

  // The message.
  const std::string& bytes() const { return message_; }

 private:
  // Values of a type whose bytes in memory are those sent.
  template <typename T>
  void Content(std::string_view name, int dtype, std::span<const T> values, Shape shape);
  void Input(std::string_view name, int dtype, std::string_view body, size_t count, Shape shape);

  std::string message_;
};

}  // namespace columns

#endif  // COLCAST_EXAMPLES_CPP_COLUMN_REQUEST_H_
