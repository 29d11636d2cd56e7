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
#include "serving_patches/column_source.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast {

// Immutable after Create(); any number of threads may call Build() concurrently.
class SignatureInputs {
 public:
  // Working memory of Build(). The caller keeps one per thread, so that later calls allocate
  // nothing but tensors. After a successful Build(), `plan.rows` is the request's N.
  struct Scratch {
    std::vector<int> positions;
    std::vector<const ColumnSource*> sources;
    std::vector<ReceivedShape> shapes;
    ExpansionPlan plan;
  };

  // Limits that keep a small request from taking much memory.
  struct Limits {
    int64_t max_rows = std::numeric_limits<int64_t>::max();
    // How many bytes the tensors of a request may take beyond those that were sent.
    int64_t max_expanded_bytes = int64_t{1} << 30;
    // What messages call that limit. Must outlive the SignatureInputs.
    absl::string_view max_expanded_bytes_setting = "max_expanded_bytes";
  };

  // Orders inputs by alias. An input to which no tensor can be fed (coo_sparse or composite
  // TensorInfo) is not an error here, but makes every Build() fail. Returns INVALID_ARGUMENT for a
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

  // OK, or which input no tensor can be fed to.
  const absl::Status& feedable() const { return unfeedable_; }

  // The position of an input, or -1. Faster if `likely` is its position.
  int Find(absl::string_view alias) const;
  int Find(absl::string_view alias, int likely) const {
    const bool is_there = likely >= 0 && static_cast<size_t>(likely) < inputs_.size() &&
                          inputs_[likely].alias == alias;
    return is_there ? likely : Find(alias);
  }

  // Sets `(*positions)[i]` to Find(received[i].alias). Faster if `*positions` holds the result for
  // an earlier request with its inputs in the same order.
  void FindAll(absl::Span<const ReceivedInput> received, std::vector<int>* positions) const;

  // Sets `*feeds` to one tensor per input, by position, expanded by the rule. Reuses tensors in
  // `*feeds` unless their memory is shared.
  //
  // If an alias occurs twice in `received`, the last one counts. Returns RESOURCE_EXHAUSTED if the
  // request exceeds the limits, before it allocates anything. Returns INVALID_ARGUMENT with the
  // input's alias if an input is not in the signature, PlanExpansion() rejects it, or its content
  // does not fit its shape. After an error `*feeds` is unspecified.
  absl::Status Build(absl::Span<const ReceivedInput> received, Scratch* scratch,
                     std::vector<tensorflow::Tensor>* feeds) const {
    FindAll(received, &scratch->positions);
    return Build(received, scratch->positions, scratch, feeds);
  }

  // Like Build() above, with `positions` from FindAll() of this object or of another one with the
  // same aliases.
  absl::Status Build(absl::Span<const ReceivedInput> received, absl::Span<const int> positions,
                     Scratch* scratch, std::vector<tensorflow::Tensor>* feeds) const {
    absl::Status status = Plan(received, positions, scratch);
    return status.ok() ? BuildFeeds(*scratch, feeds) : status;
  }

  // The two halves of Build(), for callers that do not need every tensor. Plan() finds errors in
  // names and shapes, the others in contents. The columns in `received` must outlive these calls.
  absl::Status Plan(absl::Span<const ReceivedInput> received, absl::Span<const int> positions,
                    Scratch* scratch) const;
  // Like Plan(), for inputs that are all in the signature. `shapes` are by position;
  // `extra_bytes(i, copies)` is ColumnSource::ExtraBytes() of a received input.
  absl::Status PlanShapes(absl::Span<const ReceivedShape> shapes,
                          absl::FunctionRef<double(size_t position, int64_t copies)> extra_bytes,
                          ExpansionPlan* plan) const;
  absl::Status BuildFeeds(const Scratch& scratch, std::vector<tensorflow::Tensor>* feeds) const;
  absl::Status BuildFeed(int position, const Scratch& scratch, tensorflow::Tensor* feed) const;

  // Builds one input's tensor without a plan: from `source` or, if that is null, from the input's
  // default. Repeats a single row to `rows`, unless `rows` is kAsSent. REQUIRES an input that
  // Plan() would accept.
  static constexpr int64_t kAsSent = -1;
  absl::Status BuildRows(int position, const ColumnSource* source, int64_t rows,
                         tensorflow::Tensor* feed) const;

 private:
  explicit SignatureInputs(const Limits& limits) : limits_(limits) {}
  absl::Status SetDefault(int position, const tensorflow::TensorProto& proto);
  absl::Status Expand(int position, const ColumnSource* source, int64_t rows,
                      tensorflow::Tensor* feed) const;
  absl::Status CheckLimits(const ExpansionPlan& plan,
                           absl::FunctionRef<double(size_t, int64_t)> extra_bytes) const;

  Limits limits_;
  std::vector<DeclaredInput> inputs_;
  std::vector<std::string> feed_names_;
  // The defaults by position; uninitialized for inputs without one.
  std::vector<tensorflow::Tensor> defaults_;
  absl::flat_hash_map<std::string, int> positions_;
  absl::Status unfeedable_;  // what Build() returns if no tensor can be fed to some input
};

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_
