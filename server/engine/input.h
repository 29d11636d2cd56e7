// An input of a request: a received column that stays as it was sent until it is decoded into a
// tensor. Made once; programs and batches point to it.
#ifndef COLCAST_SERVER_ENGINE_INPUT_H_
#define COLCAST_SERVER_ENGINE_INPUT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/states/keys.h"
#include "server/wire/predict_request.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class Input : public ColumnSource {
 public:
  // `column` must outlive this object.
  explicit Input(const Column& column)
      : column_(&column),
        dims_(column.dims),
        dtype_(static_cast<tensorflow::DataType>(column.dtype)) {}

  // Checks by sizes alone that the values fit the shape. Call once for every column of a request
  // before allocating the first tensor, so that a column with wrong dimensions costs no memory. All
  // methods below REQUIRE that it returned OK.
  absl::Status Check();

  tensorflow::DataType dtype() const override { return dtype_; }
  absl::Span<const int64_t> dims() const override { return dims_; }

  const Column& column() const { return *column_; }
  std::string_view name() const { return column_->name; }
  int64_t count() const { return count_; }  // elements

  // The approximate bytes of the values in the message; may include field headers.
  int64_t WireBytes() const { return wire_bytes_; }

  // Decodes all sent values into `out`, starting at element `at`. Returns INVALID_ARGUMENT for
  // values that CopyValues() and VisitStrings() refuse. REQUIRES a tensor of dtype() with enough
  // room.
  absl::Status Decode(tensorflow::Tensor* out, int64_t at) const;

  // The bytes of a tensor with the rows as sent, including strings.
  double TensorBytes() const;
  double ExtraBytes(int64_t copies) const final;

  // Decodes into a tensor. A row that must be repeated is decoded once, then copied. Reuses the
  // buffer of `*out` if it already has the dtype and shape and is not shared.
  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  // Copies of frequently used fields: a request's columns are scattered in memory, which costs
  // cache misses.
  const Column* column_;
  absl::Span<const int64_t> dims_;
  tensorflow::DataType dtype_;
  int64_t count_ = 0;  // elements
  int64_t wire_bytes_ = 0;
};

// A column that already is a tensor, with the rows of several requests or of one request's slice.
class TensorView {
 protected:
  TensorView(std::string_view name, const tensorflow::Tensor& tensor);
  Column view_;
};

// Presents the tensor's memory as a received column, so that keys can be made from it. Runs are fed
// the tensor itself.
class TensorInput final : private TensorView, public Input {
 public:
  // REQUIRES rank >= 1. `name` must outlive the column.
  TensorInput(std::string_view name, tensorflow::Tensor tensor);
  TensorInput(const TensorInput&) = delete;
  TensorInput& operator=(const TensorInput&) = delete;

  const tensorflow::Tensor& tensor() const { return tensor_; }

  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  const tensorflow::Tensor tensor_;
};

// Some rows of a column. Copies numbers that were decoded for the rows' keys instead of decoding
// them again.
class PickedInput final : public ColumnSource {
 public:
  // `column` is the `index`th column added to `row_keys`, or comes from an item table. `rows` are
  // the numbers of the rows to pick, in ascending order; `places[row]` is the position of a row
  // among them, or -1. All must outlive this object.
  PickedInput(const Input& column, const states::RowKeys& row_keys, size_t index,
              const std::vector<int64_t>& rows, const std::vector<int32_t>& places)
      : column_(&column),
        row_keys_(&row_keys),
        index_(index),
        rows_(&rows),
        places_(&places),
        dims_(column.dims().begin(), column.dims().end()) {
    dims_[0] = static_cast<int64_t>(rows.size());
  }

  tensorflow::DataType dtype() const override { return column_->dtype(); }
  absl::Span<const int64_t> dims() const override { return dims_; }

  // 0, because the bytes of the whole column have already been counted.
  double ExtraBytes(int64_t) const override { return 0; }

  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  void CopyStored(const StoredValues& stored, tensorflow::Tensor* out) const;

  const Input* column_;
  const states::RowKeys* row_keys_;
  size_t index_;
  const std::vector<int64_t>* rows_;
  const std::vector<int32_t>* places_;
  Dims dims_;
};

// Writes the strings of a column into a tensor.
class StringFiller final : public StringVisitor {
 public:
  explicit StringFiller(tensorflow::tstring* out) : out_(out) {}

  void Set(int64_t index, const Bytes& value) override {
    if (value.contiguous()) {
      out_[index].assign(value.view().data(), value.size());
    } else {
      out_[index].resize_uninitialized(value.size());
      value.CopyTo(out_[index].mdata());
    }
  }

 private:
  tensorflow::tstring* const out_;
};

// Whether a column was sent and has its own value for each of `rows` rows, not one for all.
bool HasRows(const DeclaredInput& input, const Input* column, int64_t rows);

// Reads a column of lengths. Returns false unless it holds readable integers.
bool ReadLengths(const Input& column, std::vector<int64_t>* lengths);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_INPUT_H_
