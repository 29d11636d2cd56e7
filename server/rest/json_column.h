// Converts nested lists in JSON to a column.
#ifndef COLCAST_SERVER_REST_JSON_COLUMN_H_
#define COLCAST_SERVER_REST_JSON_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/http1/request_memory.h"
#include "server/rest/json_value.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

// One input of a request. Its values arrive all at once (column format) or row by row (row format),
// each a scalar or nested lists of equal lengths; all rows have the first row's shape. Elements are
// stored in the form that the engine reads: numbers in memory layout, strings as string_val.
class JsonColumn {
 public:
  // `name` must outlive the column, and `memory` the buffers moved out of it.
  JsonColumn(std::string_view name, DataType dtype, RequestMemory* memory)
      : name_(name), dtype_(dtype), content_(memory) {}

  std::string_view name() const { return name_; }

  // Adds a value: Begin(), then its elements, then Finish(). INVALID_ARGUMENT names the input, the
  // place in it, the value and the expected type; UNIMPLEMENTED for a dtype that TF Serving's JSON
  // cannot represent. Of several errors, returns the one that begins first in the text. No value
  // may follow one with an error.
  void Begin() { place_.clear(); }
  void Value(const JsonValue& value);
  void End(size_t count);
  Status Finish();

  // Moves the values to `column`, which must be empty, and their elements to `content`. The
  // column's shape is [rows, ...shape of a row...] or, if `rows` is negative, that of the single
  // value. This object must not be used afterwards.
  void MoveTo(int64_t rows, CountedBytes* content, Column* column);

 private:
  static constexpr int64_t kOpen = -1;  // unknown until the level's first list has ended

  void Shape(const JsonValue& value);
  // Returns false after recording the culprit.
  bool Fill(const JsonValue& value);
  template <typename Float>
  bool FillFloat(const JsonValue& value);
  template <typename Integer>
  bool FillInteger(const JsonValue& value);
  bool FillString(const JsonValue& value);
  template <typename T>
  bool Store(T element);
  void StoreString(std::string_view text);
  bool Mismatch(const JsonValue& value, const std::string& expected);
  void MismatchLength(const JsonValue& value, size_t level);
  void MismatchedList(const JsonValue& list);
  void EndAfterError(size_t count);
  void NextPlace();
  // The place of the element being read, for example "age"[3][1].
  std::string Place() const;

  const std::string_view name_;
  const DataType dtype_;
  bool has_shape_ = false;
  std::vector<int64_t> shape_;   // shape of one value
  std::vector<uint32_t> place_;  // position of the element being read
  CountedBytes content_;
  int64_t strings_ = 0;

  // The first error. Parts of its message may become known later: the culprit's size, the expected
  // shape, and whether an enclosing list has the wrong length.
  struct Culprit {
    size_t depth = 0;  // number of enclosing lists that have not ended
    bool open = false;
    std::string where;
    JsonValue::Kind kind = JsonValue::Kind::kNull;
    std::string description;
    std::string expected;  // empty means a single value, like the ones before it
    Status status;         // the first error, or OK
  };
  bool failed_ = false;
  Culprit culprit_;
  size_t depth_ = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_JSON_COLUMN_H_
