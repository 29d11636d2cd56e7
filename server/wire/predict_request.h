// A decoded request: names, dtypes and shapes, and views of the values. It is read directly from a
// serialized tensorflow.serving.PredictRequest, or filled from another form such as JSON, without a
// protobuf object in between.
#ifndef COLCAST_SERVER_WIRE_PREDICT_REQUEST_H_
#define COLCAST_SERVER_WIRE_PREDICT_REQUEST_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/column_values.h"
#include "server/wire/data_type.h"
#include "server/wire/name_table.h"

namespace colcast {

// TensorFlow's limit on a tensor's dimensions.
inline constexpr size_t kMaxDimensions = 254;

// Keeps one dimension beyond the limit, so that the check sees it.
inline void AddDim(int64_t dim, std::vector<int64_t>* dims) {
  if (dims->size() <= kMaxDimensions) dims->push_back(dim);
}

// One entry of PredictRequest.inputs: a name and its TensorProto.
struct Column {
  std::string_view name;
  DataType dtype = DT_INVALID;
  bool unknown_rank = false;
  std::vector<int64_t> dims;  // as sent, maybe negative or overflowing: check with ElementCount()
  ColumnValues values;        // read with server/wire/tensor_values.h

  void Clear();
};

struct ModelSpec {
  std::string name;
  std::optional<int64_t> version;
  std::optional<std::string> version_label;  // never together with version
  std::string signature_name;                // empty: the default signature
};

// A decoded request. Its views point into the message and into the object itself, so the message's
// bytes and its array of slices must stay unchanged while it is in use, as must any other source
// that filled it. Reusable: Clear() keeps the memory, so a worker's request soon decodes without
// allocating.
class DecodedRequest {
 public:
  DecodedRequest() = default;
  DecodedRequest(const DecodedRequest&) = delete;
  DecodedRequest& operator=(const DecodedRequest&) = delete;

  const ModelSpec& model_spec() const { return model_spec_; }

  // The client's id of the request, returned with the answer; may be empty.
  std::string_view id() const { return id_; }

  // The inputs, each name once, in order of their first occurrence.
  const Column* begin() const { return columns_.data(); }
  const Column* end() const { return columns_.data() + column_count_; }
  size_t column_count() const { return column_count_; }
  const Column& column(size_t index) const { return columns_[index]; }

  // Null if no input has that name. Not thread-safe: it fills a table.
  const Column* Find(std::string_view name) const;

  // As sent: in order, duplicates included.
  const std::vector<std::string_view>& output_filter() const { return output_filter_; }

  void Clear();

  // The memory of its columns, including memory kept by Clear(), but not the message.
  size_t MemoryBytes() const;

  // For requests in other forms than PredictRequest.
  ModelSpec* mutable_model_spec() { return &model_spec_; }
  void set_id(std::string_view id) { id_ = id; }
  std::vector<std::string_view>* mutable_output_filter() { return &output_filter_; }

  // Adds a column with this name, whose dtype, dims and values the caller sets; null if the name
  // exists. Valid until the next column is added.
  Column* AddColumn(std::string_view name);

  // AddColumn() for a name that is certain to be new.
  Column* AddNewColumn(std::string_view name);

  Column* mutable_column(size_t index) { return &columns_[index]; }

  // Moves the last column into the place of the removed one.
  void RemoveColumn(size_t index);

  // An object that `owner` derived from the input names of an earlier message. Null unless this
  // message was decoded with the same names in the same order, so that the object need not be
  // derived again.
  template <typename Made, typename Owner>
  const Made* MadeOfNames(const std::shared_ptr<Owner>& owner) const {
    const bool is_owners = !made_for_.owner_before(owner) && !owner.owner_before(made_for_);
    return as_decoded_ && is_owners ? static_cast<const Made*>(made_of_names_.get()) : nullptr;
  }
  void KeepMadeOfNames(std::weak_ptr<const void> owner, std::shared_ptr<const void> made);

  // Holds the bytes until Clear(), for views that point into them.
  std::string_view Keep(std::string bytes) { return kept_.emplace_back(std::move(bytes)); }

  // Holds stored values, or their source, until Clear().
  void Keep(std::shared_ptr<const void> stored) { stored_.push_back(std::move(stored)); }

 private:
  friend class InferRequestDecoder;
  friend class PredictRequestDecoder;

  NameTable& AllNames() const;
  // `as_before`: the names equal the first ones of the previous message.
  void RememberNames(bool as_before);

  ModelSpec model_spec_;
  std::string_view id_;
  std::vector<Column> columns_;  // the first column_count_ are in use; the others only keep memory
  size_t column_count_ = 0;
  std::vector<std::string_view> output_filter_;
  // The distinct names of the previous message, which the next one probably repeats.
  std::vector<std::string> names_before_;
  bool as_decoded_ = false;  // the columns have these names, in this order
  std::weak_ptr<const void> made_for_;
  std::shared_ptr<const void> made_of_names_;
  mutable NameTable names_;       // names of the first columns of columns_; filled when needed
  std::deque<std::string> kept_;  // includes names that crossed a slice border
  std::vector<std::shared_ptr<const void>> stored_;
};

// Decodes `message` into `request`, which is cleared first, by protobuf's rules: the last of
// repeated map keys wins, sub-messages merge, repeated fields may be packed or not, unknown fields
// are skipped. Returns INVALID_ARGUMENT, naming field, input and byte, for what protobuf would
// refuse; `request` is then unspecified. Whether values fit their dtype and shape is not checked
// here but in server/wire/tensor_values.h. Returns RESOURCE_EXHAUSTED beyond `max_columns` inputs,
// outputs in the filter, or messages merged into one tensor: each takes much more memory than its
// bytes on the wire.
Status DecodePredictRequest(const Bytes& message, DecodedRequest* request,
                            size_t max_columns = std::numeric_limits<size_t>::max());

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_PREDICT_REQUEST_H_
