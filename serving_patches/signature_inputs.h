// Makes the tensors to feed from a request's columns. Prepares a signature's inputs only once.
#ifndef COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_
#define COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast {

// A column of a request before it becomes a tensor. Hides from the expansion rule how a request
// arrives: as TensorProtos in the fork, as wire bytes in the native server.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;

  virtual tensorflow::DataType dtype() const = 0;

  // The dimensions as sent, unchecked. The span lives as long as the source.
  virtual absl::Span<const int64_t> dims() const = 0;

  // How many bytes the column's tensor, with its row repeated `copies` times, needs beyond the
  // bytes that were sent: numbers may be shorter on the wire, a short list repeats its last element
  // to fill the shape, and the row is copied. Computed from sizes alone. A double, because it
  // cannot overflow. REQUIRES that dims() have passed the expansion rule.
  virtual double ExtraBytes(int64_t copies) const = 0;

  // Decodes the column into a tensor of shape `target`, which is dims() or, if the column has one
  // row, dims() with another number of rows; then the row is repeated. Overwrites `*out`, and may
  // reuse its buffer unless that is shared. Returns INVALID_ARGUMENT for content that does not fit
  // dims(); the caller adds the input's alias.
  virtual absl::Status BuildTensor(const tensorflow::TensorShape& target,
                                   tensorflow::Tensor* out) const = 0;
};

// Immutable after Create(); any number of threads may use it at once.
class SignatureInputs {
 public:
  // Limits that keep a small request from taking much memory.
  struct Limits {
    int64_t max_rows = std::numeric_limits<int64_t>::max();
    // The bytes that a request's tensors may take in addition to the bytes that were sent.
    int64_t max_expanded_bytes = int64_t{1} << 30;
    // The limit's name in error messages. Must outlive the SignatureInputs.
    absl::string_view max_expanded_bytes_setting = "max_expanded_bytes";
  };

  // Orders inputs by alias. An input to which no tensor can be fed (coo_sparse or composite
  // TensorInfo) is not an error here, but makes every plan fail. Returns INVALID_ARGUMENT for a
  // default that cannot be decoded. With `as_sent`, no input is batched: all pass unchanged.
  static absl::StatusOr<SignatureInputs> Create(const tensorflow::SignatureDef& signature,
                                                const Limits& limits, bool as_sent = false);
  static absl::StatusOr<SignatureInputs> Create(const tensorflow::SignatureDef& signature) {
    return Create(signature, Limits());
  }

  const Limits& limits() const { return limits_; }

  // Aliases, dtypes and shapes, by position.
  absl::Span<const DeclaredInput> inputs() const { return inputs_; }

  // The inputs' names in the graph ("serving_default_age:0"), by position.
  const std::vector<std::string>& feed_names() const { return feed_names_; }

  // OK, or an error that names an input that cannot be fed.
  const absl::Status& feedable() const { return unfeedable_; }

  // The position of an input, or -1. Faster if `likely` is its position.
  int Find(absl::string_view alias) const;
  int Find(absl::string_view alias, int likely) const {
    const bool is_there = likely >= 0 && static_cast<size_t>(likely) < inputs_.size() &&
                          inputs_[likely].alias == alias;
    return is_there ? likely : Find(alias);
  }

  // The columns of a request, by the position of their inputs; null if left out.
  using Columns = absl::Span<const ColumnSource* const>;

  // Applies the expansion rule to a request; `unknown` names its inputs that are not in the
  // signature. Returns RESOURCE_EXHAUSTED if the request exceeds the limits; INVALID_ARGUMENT from
  // PlanExpansion(), and for unknown inputs, with their names. Allocates no tensors.
  absl::Status Plan(Columns columns, absl::Span<const absl::string_view> unknown,
                    ExpansionPlan* plan) const;

  // Like Plan(), for a request without unknown inputs. `shapes` are by position; `extra_bytes(i,
  // copies)` is ColumnSource::ExtraBytes() of a received input, and is called only if `most_bytes`,
  // an upper bound of the sum over all received inputs, exceeds the limit.
  absl::Status PlanShapes(absl::Span<const ReceivedShape> shapes, double most_bytes,
                          absl::FunctionRef<double(size_t position, int64_t copies)> extra_bytes,
                          ExpansionPlan* plan) const;

  // Builds one input's tensor from `source` or, if that is null, from the input's default. Repeats
  // a single row to `rows`, unless `rows` is kAsSent. Reuses the tensor's memory unless that is
  // shared. Returns INVALID_ARGUMENT, with the input's alias, for content that does not fit its
  // shape. REQUIRES an input that Plan() would accept.
  static constexpr int64_t kAsSent = -1;
  absl::Status BuildRows(int position, const ColumnSource* source, int64_t rows,
                         tensorflow::Tensor* feed) const;

 private:
  explicit SignatureInputs(const Limits& limits) : limits_(limits) {}
  absl::Status SetDefault(int position, const tensorflow::TensorProto& proto);
  absl::Status Expand(int position, const ColumnSource* source, int64_t rows,
                      tensorflow::Tensor* feed) const;
  absl::Status CheckLimits(const ExpansionPlan& plan, double most_bytes,
                           absl::FunctionRef<double(size_t, int64_t)> extra_bytes) const;

  Limits limits_;
  std::vector<DeclaredInput> inputs_;
  std::vector<std::string> feed_names_;
  // The defaults by position; uninitialized for inputs without one.
  std::vector<tensorflow::Tensor> defaults_;
  double default_bytes_ = 0;  // the sum of their sizes
  absl::flat_hash_map<std::string, int> positions_;
  absl::Status unfeedable_;  // every plan's error if some input cannot be fed
};

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_
