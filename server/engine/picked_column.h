// A column made of some rows of a received column.
#ifndef COLCAST_SERVER_ENGINE_PICKED_COLUMN_H_
#define COLCAST_SERVER_ENGINE_PICKED_COLUMN_H_

#include <cstdint>
#include <vector>

#include "server/engine/wire_column.h"
#include "server/states/row_keys.h"
#include "serving_patches/column_source.h"

namespace colcast::engine {

// Copies numbers from where they were decoded for the rows' keys, instead of decoding them again.
class PickedColumn final : public ColumnSource {
 public:
  // `column` is the `index`th column added to `row_keys`, or comes from an item table. `rows` are
  // the numbers of the rows to pick, in ascending order; `places[row]` is the position of a row
  // among them, or -1. All must outlive this object.
  PickedColumn(const WireColumn& column, const states::RowKeys& row_keys, size_t index,
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

  // 0, because the bytes of the whole column have been counted.
  double ExtraBytes(int64_t) const override { return 0; }

  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  void CopyStored(const StoredValues& stored, tensorflow::Tensor* out) const;

  const WireColumn* column_;
  const states::RowKeys* row_keys_;
  size_t index_;
  const std::vector<int64_t>* rows_;
  const std::vector<int32_t>* places_;
  Dims dims_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PICKED_COLUMN_H_
