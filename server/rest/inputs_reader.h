// Converts "instances" and "inputs" to columns. Used only by predict_json.cc.
#ifndef COLCAST_SERVER_REST_INPUTS_READER_H_
#define COLCAST_SERVER_REST_INPUTS_READER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "server/http1/request_memory.h"
#include "server/rest/json_column.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_value.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::http {

// The base of both forms: passes values to the column that is being read.
class InputsReader : public ValueReader {
 public:
  // Adds columns to `request`, with their values in `contents`; all arguments must outlive this
  // object. `limit` may be null.
  InputsReader(const tensorflow::SignatureDef& signature, const RowLimit* limit,
               RequestMemory* memory, DecodedRequest* request, std::deque<CountedBytes>* contents)
      : signature_(signature),
        limit_(limit),
        memory_(memory),
        request_(request),
        contents_(contents) {}

 protected:
  const tensorflow::SignatureDef& signature() const { return signature_; }
  DecodedRequest* request() { return request_; }
  JsonColumn MakeColumn(std::string_view name, const tensorflow::TensorInfo& input) const;
  void MoveColumn(JsonColumn* column, int64_t rows, size_t index);

  // The next value at the current depth belongs to `column`.
  void BeginColumn(JsonColumn* column) {
    column_ = column;
    column->Begin();
  }
  // Passes the value to the column; true if the column's value has ended.
  bool ToColumn(const JsonValue& value, size_t column_depth);
  bool EndInColumn(size_t count, size_t column_depth);
  Status FinishColumn() { return column_->Finish(); }

  bool IsTooMany(int64_t rows, std::string_view input) const {
    return limit_ != nullptr && limit_->IsPassed(rows, input);
  }
  void StopAtLimit(const std::string& where) { Stop(limit_->TooMany(where)); }

  std::string InputNames() const;
  Status UnknownInput(const std::string& where, std::string_view name) const;

 private:
  const tensorflow::SignatureDef& signature_;
  const RowLimit* const limit_;
  RequestMemory* const memory_;
  DecodedRequest* const request_;
  std::deque<CountedBytes>* const contents_;
  JsonColumn* column_ = nullptr;
};

// Reads "instances": one object per row with the same inputs in each, or values of the only input.
class RowsReader final : public InputsReader {
 public:
  using InputsReader::InputsReader;

  // Call after reading, if there was no error.
  void FillColumns();

 private:
  struct Named {
    JsonColumn column;
    int64_t next_row = 0;
  };

  void OnValue(const JsonValue& value) override;
  void OnKey(std::string_view name) override;
  void OnEnd(size_t count) override;
  void BeginRow(const JsonValue& row);
  void EndRow();
  void EndColumn();
  size_t ColumnDepth() const { return objects_ ? 2 : 1; }
  std::string Here() const { return "instances[" + std::to_string(rows_) + "]"; }
  Status FindColumn(std::string_view name, size_t position, size_t* index);
  Status AddColumn(std::string_view name, size_t* index);
  bool IsTooManyRows() const;
  Status CheckComplete() const;
  std::string_view MissingInput() const;

  bool objects_ = false;
  std::deque<Named> columns_;  // in the order of the request's columns
  size_t position_ = 0;        // position of the next input within its row
  int64_t rows_ = 0;           // number of complete rows
};

// Reads "inputs": an object of columns, or the only input's value.
class ColumnsReader final : public InputsReader {
 public:
  using InputsReader::InputsReader;

 private:
  void OnValue(const JsonValue& value) override;
  void OnKey(std::string_view name) override;
  void OnEnd(size_t count) override;
  void AddColumn(std::string_view name, const tensorflow::TensorInfo& input);
  void EndColumn();

  bool object_ = false;
  std::optional<JsonColumn> filled_;
  int64_t rows_ = 0;  // rows of the current input so far
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_INPUTS_READER_H_
