#include "server/engine/picked_column.h"

#include <cstring>

#include "server/engine/rows.h"
#include "server/engine/status.h"
#include "server/engine/string_filler.h"
#include "server/wire/tensor_values.h"
#include "tensorflow/core/platform/tstring.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::tstring;

// Writes the strings of picked rows.
class StringPicker final : public StringVisitor {
 public:
  StringPicker(const std::vector<int32_t>& places, int64_t row_elements, tstring* out)
      : places_(places), row_elements_(row_elements), out_(out) {}

  void Set(int64_t index, const Bytes& value) override {
    last_ = value;
    Write(index);
  }

  void Repeat(int64_t begin, int64_t end) override {
    for (int64_t i = begin; i < end; ++i) Write(i);
  }

 private:
  void Write(int64_t index) {
    const int32_t place = places_[index / row_elements_];
    if (place < 0) return;
    tstring& target = out_[place * row_elements_ + index % row_elements_];
    target.resize_uninitialized(last_.size());
    last_.CopyTo(target.mdata());
  }

  const std::vector<int32_t>& places_;
  const int64_t row_elements_;
  tstring* const out_;
  Bytes last_;
};

}  // namespace

absl::Status PickedColumn::BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const {
  if (absl::Status status = MakeTensor(dtype(), target, out); !status.ok()) return status;
  if (target.num_elements() == 0) return absl::OkStatus();
  if (const StoredValues* const stored = column_->column().values.stored; stored != nullptr) {
    CopyStored(*stored, out);
    return absl::OkStatus();
  }
  const int64_t row_elements = target.num_elements() / target.dim_size(0);
  if (dtype() == tensorflow::DT_STRING) {
    StringPicker picker(*places_, row_elements, static_cast<tstring*>(out->data()));
    return ToAbsl(VisitStrings(column_->column(), column_->count(), &picker));
  }
  const size_t row_bytes = row_elements * tensorflow::DataTypeSize(dtype());
  auto* at = static_cast<char*>(out->data());
  for (const int64_t row : *rows_) {
    std::memcpy(at, row_keys_->at(index_, row), row_bytes);
    at += row_bytes;
  }
  return absl::OkStatus();
}

void PickedColumn::CopyStored(const StoredValues& stored, Tensor* out) const {
  if (dtype() == tensorflow::DT_STRING) {
    StringFiller filler(static_cast<tstring*>(out->data()));
    stored.Visit(*rows_, &filler);
  } else {
    stored.Copy(*rows_, out->data());
  }
}

}  // namespace colcast::engine
