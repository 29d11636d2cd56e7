// Reads the members of an infer request's JSON. Used only by infer_json.cc.
#ifndef COLCAST_SERVER_REST_INFER_READER_H_
#define COLCAST_SERVER_REST_INFER_READER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http1/request_memory.h"
#include "server/rest/infer_json.h"
#include "server/rest/json_column.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_value.h"
#include "server/wire/predict_request.h"

namespace colcast::http {

// Reads "inputs" or "outputs": a list of tensors, inputs with their values.
class TensorsReader final : public ValueReader {
 public:
  // `member` is a string literal. If `request` is not null, each tensor becomes one of its columns,
  // with values in `contents`. `before` has the tensors from an earlier reading, or is empty. All
  // must outlive this object.
  TensorsReader(const char* member, const RowLimit* limit, RequestMemory* memory,
                const std::vector<InferTensor>& before, size_t max_tensors, DecodedRequest* request,
                std::deque<SliceBuffer>* contents)
      : member_(member),
        limit_(limit),
        memory_(memory),
        before_(before),
        max_tensors_(max_tensors),
        request_(request),
        contents_(contents) {}

  std::vector<InferTensor>& tensors() { return tensors_; }
  // Whether data preceded its datatype and was skipped, so that the text must be read again.
  bool again() const { return again_; }

 private:
  enum class Member { kOther, kName, kDatatype, kShape, kParameters, kData };

  void OnValue(const JsonValue& value) override;
  void OnKey(std::string_view name) override;
  void OnEnd(size_t count) override;
  void OnMember(const JsonValue& value);
  void OnParameter(const JsonValue& value);
  void OnData(const JsonValue& value);
  void BeginData();
  void EndData();
  void EndTensor();
  void CheckRows(int64_t rows);
  Status FillColumn();
  void Want(const JsonValue& value, bool is_right, const char* expected);
  std::string Here() const;

  const char* const member_;
  const RowLimit* const limit_;  // null for no limit
  RequestMemory* const memory_;
  const std::vector<InferTensor>& before_;
  const size_t max_tensors_;
  DecodedRequest* const request_;
  std::deque<SliceBuffer>* const contents_;
  std::vector<InferTensor> tensors_;
  Member now_ = Member::kOther;
  std::string parameter_;
  bool again_ = false;
  int64_t rows_ = 0;         // rows of the data so far
  std::string column_name_;  // the column to which column_ refers
  std::optional<JsonColumn> column_;
};

// Reads "parameters" of the request.
class ParametersReader final : public ValueReader {
 public:
  const std::string& signature_name() const { return signature_name_; }
  bool binary_outputs() const { return binary_outputs_; }

 private:
  void OnValue(const JsonValue& value) override;
  void OnKey(std::string_view name) override;

  std::string name_;
  std::string signature_name_;
  bool binary_outputs_ = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_INFER_READER_H_
