// Converts nested lists in JSON to a column.
#ifndef COLCAST_SERVER_REST_JSON_COLUMN_H_
#define COLCAST_SERVER_REST_JSON_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/http1/request_memory.h"
#include "server/rest/json_reader.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

// One input of a request. Its values arrive all at once (column format) or row by row (row format),
// each a scalar or nested lists of equal lengths; all rows have the first row's shape. Elements are
// stored in the form that the engine reads: numbers in memory layout, strings as string_val.
//
// On failure, status() is INVALID_ARGUMENT, naming the input, the place in it, the value and the
// expected type, or UNIMPLEMENTED for a dtype that TF Serving's JSON cannot represent.
class JsonColumn final : public ValueReader {
 public:
  // `name` must outlive the column, and `memory` the buffers moved out of it.
  JsonColumn(std::string_view name, DataType dtype, RequestMemory* memory)
      : name_(name), dtype_(dtype), content_(memory) {}

  std::string_view name() const { return name_; }

  // Whether the value has ended.
  bool done() const { return depth() == 0; }

  // Moves the values to `column`, which must be empty, and their elements to `content`. The
  // column's shape is [rows, ...shape of a row...] or, if `rows` is negative, that of the single
  // value. This object must not be used afterwards.
  void MoveTo(int64_t rows, CountedBytes* content, Column* column);

 private:
  static constexpr int64_t kOpen = -1;  // unknown until the level's first list has ended

  void OnValue(const JsonValue& value) override;
  void OnEnd(size_t count) override;
  // Methods that return bool return false after failing.
  bool Fill(const JsonValue& value);
  template <typename Float>
  bool FillFloat(const JsonValue& value);
  template <typename Integer>
  bool FillInteger(const JsonValue& value);
  bool FillString(const JsonValue& value);
  template <typename T>
  bool Store(T element);
  bool StoreString(std::string_view text);
  bool Mismatch(const JsonValue& value, const std::string& expected);
  void NextPlace();
  // For example: input "age"[3][1] (DT_INT64):
  std::string Place() const;

  const std::string_view name_;
  const DataType dtype_;
  bool has_shape_ = false;
  std::vector<int64_t> shape_;   // shape of one value
  std::vector<uint32_t> place_;  // position of the element being read
  CountedBytes content_;
  int64_t strings_ = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_JSON_COLUMN_H_
