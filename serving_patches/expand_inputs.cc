#include "serving_patches/expand_inputs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "serving_patches/signature_inputs.h"
#include "tensorflow/cc/saved_model/util.h"
#include "tf_patches/repeat_row.h"

namespace colcast {
namespace {

using google::protobuf::Map;
using tensorflow::Tensor;
using tensorflow::TensorProto;

constexpr char kExpand[] = "TF_SERVING_EXPAND_USER_FEATURES";
constexpr char kMaxExpandedBytes[] = "TF_SERVING_MAX_EXPANDED_BYTES";

// A column sent as a TensorProto, which must outlive this object.
class ProtoColumn final : public ColumnSource {
 public:
  explicit ProtoColumn(const TensorProto& proto) : proto_(&proto) {
    for (const auto& dim : proto.tensor_shape().dim()) dims_.push_back(dim.size());
  }

  tensorflow::DataType dtype() const override { return proto_->dtype(); }
  absl::Span<const int64_t> dims() const override { return dims_; }
  double ExtraBytes(int64_t copies) const override {
    double elements = 1;
    for (const int64_t dim : dims_) elements *= dim;
    double bytes = elements * static_cast<double>(ElementBytes(dtype()));
    const auto sent = static_cast<double>(proto_->ByteSizeLong());
    if (dtype() == tensorflow::DT_STRING) {
      const int sent_strings = proto_->string_val_size();
      const double repeated = std::max(0.0, elements - sent_strings);
      bytes += sent;
      if (sent_strings > 0) bytes += repeated * proto_->string_val(sent_strings - 1).size();
    }
    return std::max(0.0, bytes * copies - sent);
  }
  absl::Status BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const override {
    return TensorFromProtoRepeated(*proto_, target, out);
  }

 private:
  const TensorProto* proto_;
  Dims dims_;
};

bool ExpansionIsOn() {
  static const bool on = [] {
    const char* const value = std::getenv(kExpand);
    return value == nullptr || absl::string_view(value) != "0";
  }();
  return on;
}

absl::StatusOr<SignatureInputs::Limits> ReadLimits() {
  SignatureInputs::Limits limits;
  limits.max_expanded_bytes_setting = kMaxExpandedBytes;
  const char* const value = std::getenv(kMaxExpandedBytes);
  if (value == nullptr) return limits;
  if (!absl::SimpleAtoi(value, &limits.max_expanded_bytes) || limits.max_expanded_bytes < 0) {
    return absl::FailedPreconditionError(absl::StrCat("the server's environment has ",
                                                      kMaxExpandedBytes, "=", value,
                                                      ", expected a number of bytes"));
  }
  return limits;
}

// Whether the input is declared with this rank and dtype (DT_INVALID: any). The number of rows must
// be known if `fixed`, and unknown otherwise.
bool IsDeclared(const tensorflow::SignatureDef& signature, const std::string& alias, int rank,
                tensorflow::DataType dtype, bool fixed = false) {
  const auto found = signature.inputs().find(alias);
  if (found == signature.inputs().end()) return false;
  const auto& shape = found->second.tensor_shape();
  return shape.dim_size() == rank && (shape.dim(0).size() >= 0) == fixed &&
         (dtype == tensorflow::DT_INVALID || found->second.dtype() == dtype);
}

// Whether some inputs are named and declared like the parts of a sparse or ragged tensor NAME that
// tf.saved_model.save makes: NAME, NAME_1 and NAME_2 are its indices, values and shape, or NAME and
// NAME_1 its values and row splits. The graph is not available here.
bool TakesSparseParts(const tensorflow::SignatureDef& signature) {
  using tensorflow::DT_INT32;
  using tensorflow::DT_INT64;
  for (const auto& [name, info] : signature.inputs()) {
    const std::string first = absl::StrCat(name, "_1");
    const std::string second = absl::StrCat(name, "_2");
    const bool is_sparse = IsDeclared(signature, name, 2, DT_INT64) &&
                           IsDeclared(signature, first, 1, tensorflow::DT_INVALID) &&
                           (IsDeclared(signature, second, 1, DT_INT64, /*fixed=*/true) ||
                            IsDeclared(signature, second, 1, DT_INT64));
    if (is_sparse || IsDeclared(signature, first, 1, DT_INT64) ||
        IsDeclared(signature, first, 1, DT_INT32)) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Status ExpandedInputValues(const tensorflow::SignatureDef& signature,
                                 const Map<std::string, TensorProto>& request_inputs,
                                 std::vector<std::pair<std::string, Tensor>>& inputs) {
  if (!ExpansionIsOn() || signature.inputs_size() < 2 || TakesSparseParts(signature)) {
    return tensorflow::saved_model::GetInputValues(signature, request_inputs, inputs);
  }
  static const absl::StatusOr<SignatureInputs::Limits> limits = ReadLimits();
  if (!limits.ok()) return limits.status();
  absl::StatusOr<SignatureInputs> prepared = SignatureInputs::Create(signature, *limits);
  if (!prepared.ok()) return prepared.status();

  std::vector<ProtoColumn> sent;
  sent.reserve(request_inputs.size());
  std::vector<const ColumnSource*> columns(prepared->inputs().size());
  std::vector<absl::string_view> unknown;
  for (const auto& [alias, proto] : request_inputs) {
    sent.emplace_back(proto);
    const int position = prepared->Find(alias);
    if (position < 0) {
      unknown.push_back(alias);
    } else {
      columns[position] = &sent.back();
    }
  }
  ExpansionPlan plan;
  absl::Status status = prepared->Plan(columns, unknown, &plan);
  std::vector<Tensor> feeds(columns.size());
  for (size_t i = 0; i < columns.size() && status.ok(); ++i) {
    const bool as_sent = plan.actions[i] == InputAction::kPass || !prepared->inputs()[i].batched();
    status = prepared->BuildRows(static_cast<int>(i), columns[i],
                                 as_sent ? SignatureInputs::kAsSent : plan.rows, &feeds[i]);
  }
  if (!status.ok()) return status;
  for (size_t i = 0; i < feeds.size(); ++i) {
    inputs.emplace_back(prepared->feed_names()[i], std::move(feeds[i]));
  }
  return absl::OkStatus();
}

}  // namespace colcast
