// A signature's inputs, prepared once, and the tensors to feed made from them for each request.
#ifndef COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_
#define COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "serving_patches/column_source.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast {

// Immutable after Create(); any number of threads may call Build() at once.
class SignatureInputs {
 public:
  // Working memory of Build(), the caller's to keep (one per thread) so that the next call
  // allocates nothing but tensors. After a Build() that succeeded, `plan.rows` is the request's N.
  struct Scratch {
    std::vector<int> positions;
    std::vector<const ColumnSource*> sources;
    std::vector<ReceivedShape> shapes;
    ExpansionPlan plan;
  };

  // What a small request may ask for.
  struct Limits {
    int64_t max_rows = std::numeric_limits<int64_t>::max();
    // What all inputs of a request may take as tensors beyond the bytes in which they were sent.
    int64_t max_expanded_bytes = int64_t{1} << 30;
    // What an operator sets the latter with, for messages. Outlives the SignatureInputs.
    absl::string_view max_expanded_bytes_setting = "max_expanded_bytes";
  };

  // Inputs are ordered by alias. An input that no tensor can be fed to (coo_sparse or composite
  // TensorInfo) is no error here but in every Build(). INVALID_ARGUMENT for a default that does
  // not decode.
  static absl::StatusOr<SignatureInputs> Create(const tensorflow::SignatureDef& signature,
                                                const Limits& limits);
  static absl::StatusOr<SignatureInputs> Create(const tensorflow::SignatureDef& signature) {
    return Create(signature, Limits());
  }

  // Aliases, dtypes and shapes, by position.
  absl::Span<const DeclaredInput> inputs() const { return inputs_; }

  // The graph's names of the inputs ("serving_default_age:0"), by position.
  const std::vector<std::string>& feed_names() const { return feed_names_; }

  // The position of an input, or -1.
  int Find(absl::string_view alias) const;

  // Sets `(*positions)[i]` to Find(received[i].alias). Is faster if `*positions` holds those of a
  // request whose inputs came in the same order.
  void FindAll(absl::Span<const ReceivedInput> received, std::vector<int>* positions) const;

  // Sets `*feeds` to one tensor for each input, by position, expanded as the rule says. Tensors
  // that it holds may be filled again, unless others share their memory.
  //
  // Of an alias that occurs twice in `received`, the last counts.
  // RESOURCE_EXHAUSTED beyond the limits, before anything is allocated: a column of no elements may
  // claim any number of rows, and a small request must not fill the memory.
  // INVALID_ARGUMENT names the input: unknown to the signature, anything PlanExpansion() rejects,
  // or content that does not fit its shape. On error `*feeds` holds no meaning.
  absl::Status Build(absl::Span<const ReceivedInput> received, Scratch* scratch,
                     std::vector<tensorflow::Tensor>* feeds) const {
    FindAll(received, &scratch->positions);
    return Build(received, scratch->positions, scratch, feeds);
  }

  // The same, with the `positions` of `received` already found: here or by other SignatureInputs
  // that have the same aliases.
  absl::Status Build(absl::Span<const ReceivedInput> received, absl::Span<const int> positions,
                     Scratch* scratch, std::vector<tensorflow::Tensor>* feeds) const {
    absl::Status status = Plan(received, positions, scratch);
    return status.ok() ? BuildFeeds(*scratch, feeds) : status;
  }

  // The two halves of Build(), for those who need not every tensor: what is wrong with shapes and
  // names is found by the first, what is wrong with contents by the second. The columns that
  // `received` points to must live on until then.
  absl::Status Plan(absl::Span<const ReceivedInput> received, absl::Span<const int> positions,
                    Scratch* scratch) const;
  absl::Status BuildFeeds(const Scratch& scratch, std::vector<tensorflow::Tensor>* feeds) const;
  absl::Status BuildFeed(int position, const Scratch& scratch, tensorflow::Tensor* feed) const;

  // The same for one input without a plan: what came for it or, where that is null, its default.
  // If it has one row, that is repeated to `rows`, unless they are kAsSent. REQUIRES what Plan()
  // checks.
  static constexpr int64_t kAsSent = -1;
  absl::Status BuildRows(int position, const ColumnSource* source, int64_t rows,
                         tensorflow::Tensor* feed) const;

 private:
  explicit SignatureInputs(const Limits& limits) : limits_(limits) {}
  absl::Status SetDefault(int position, const tensorflow::TensorProto& proto);
  absl::Status Expand(int position, const ColumnSource* source, int64_t rows,
                      tensorflow::Tensor* feed) const;
  absl::Status CheckLimits(const Scratch& scratch) const;

  Limits limits_;
  std::vector<DeclaredInput> inputs_;
  std::vector<std::string> feed_names_;
  std::vector<tensorflow::Tensor> defaults_;  // by position; uninitialized where there is none
  absl::flat_hash_map<std::string, int> positions_;
  absl::Status unfeedable_;  // what Build() answers if an input cannot be fed at all
};

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_SIGNATURE_INPUTS_H_
