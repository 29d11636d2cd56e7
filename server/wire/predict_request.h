// A decoded request: names, dtypes and shapes, and views of the values. Read from a
// tensorflow.serving.PredictRequest where it lies, or filled from another form of it, such as JSON;
// there is no protobuf object in between.
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

// A tensor's, TensorFlow's.
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
  std::vector<int64_t> dims;  // as sent: may be negative or overflow; see ElementCount
  ColumnValues values;        // read with server/wire/tensor_values.h

  void Clear();
};

struct ModelSpec {
  std::string name;
  std::optional<int64_t> version;
  std::optional<std::string> version_label;  // never together with version
  std::string signature_name;                // empty: the default signature
};

// A decoded request. Views point into the message and into the object itself, so both the
// message's bytes and its array of slices must stay as they are while it is in use; so must what
// it was filled with. Made to be reused: Clear() keeps the memory, and a worker's request soon
// decodes without allocating.
class DecodedRequest {
 public:
  DecodedRequest() = default;
  DecodedRequest(const DecodedRequest&) = delete;
  DecodedRequest& operator=(const DecodedRequest&) = delete;

  const ModelSpec& model_spec() const { return model_spec_; }

  // The client's id of the request, repeated in the answer; may be empty.
  std::string_view id() const { return id_; }

  // The inputs, each name once, in the order in which the names first came.
  const Column* begin() const { return columns_.data(); }
  const Column* end() const { return columns_.data() + column_count_; }
  size_t column_count() const { return column_count_; }
  const Column& column(size_t index) const { return columns_[index]; }

  // Null if no input has that name. Not from several threads at once.
  const Column* Find(std::string_view name) const;

  // As sent: in order, duplicates included.
  const std::vector<std::string_view>& output_filter() const { return output_filter_; }

  void Clear();

  // For requests that do not come as a PredictRequest.
  ModelSpec* mutable_model_spec() { return &model_spec_; }
  void set_id(std::string_view id) { id_ = id; }
  std::vector<std::string_view>* mutable_output_filter() { return &output_filter_; }

  // A new column, empty but for its name, to be given a dtype, dims and values; null if there is
  // one of that name. Good until the next one is added.
  Column* AddColumn(std::string_view name);

  // The same where no input is known to have that name.
  Column* AddNewColumn(std::string_view name);

  Column* mutable_column(size_t index) { return &columns_[index]; }

  // The last column takes its place.
  void RemoveColumn(size_t index);

  // What `owner` made of the names of the inputs, and what has the same names next needs not make
  // again. Null unless they are those of the message that it was made of, as they were decoded.
  template <typename Made, typename Owner>
  const Made* MadeOfNames(const std::shared_ptr<Owner>& owner) const {
    const bool is_owners = !made_for_.owner_before(owner) && !owner.owner_before(made_for_);
    return as_decoded_ && is_owners ? static_cast<const Made*>(made_of_names_.get()) : nullptr;
  }
  void KeepMadeOfNames(std::weak_ptr<const void> owner, std::shared_ptr<const void> made);

  // Holds bytes until Clear() that views are to point into.
  std::string_view Keep(std::string bytes) { return kept_.emplace_back(std::move(bytes)); }

  // The same for stored values, or what they are read from.
  void Keep(std::shared_ptr<const void> stored) { stored_.push_back(std::move(stored)); }

 private:
  friend class InferRequestDecoder;
  friend class PredictRequestDecoder;

  NameTable& AllNames() const;
  // `as_before`: those in use are the first of the message before.
  void RememberNames(bool as_before);

  ModelSpec model_spec_;
  std::string_view id_;
  std::vector<Column> columns_;  // the first column_count_ are in use, the others keep memory
  size_t column_count_ = 0;
  std::vector<std::string_view> output_filter_;
  // Of the message decoded before, which the next one is likely to have, too: all different.
  std::vector<std::string> names_before_;
  bool as_decoded_ = false;  // the columns have these names, in this order
  std::weak_ptr<const void> made_for_;
  std::shared_ptr<const void> made_of_names_;
  mutable NameTable names_;       // of columns_, in the same order, as far as was needed
  std::deque<std::string> kept_;  // among them names that crossed a slice border
  std::vector<std::shared_ptr<const void>> stored_;
};

// Reads `message` into `request`, which is cleared first, by protobuf's rules: the last of
// repeated map keys wins, sub-messages merge, repeated fields may be packed or not, unknown fields
// are skipped. What protobuf would refuse is INVALID_ARGUMENT and names the field, the input and
// the byte; what `request` then holds is unspecified. Values that are well-formed but do not fit
// their dtype or shape are not looked at here: see server/wire/tensor_values.h. RESOURCE_EXHAUSTED
// beyond `max_columns` inputs, outputs in the filter, or messages that merge into a tensor before:
// each takes much more memory than it needs bytes on the wire.
Status DecodePredictRequest(const Bytes& message, DecodedRequest* request,
                            size_t max_columns = std::numeric_limits<size_t>::max());

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_PREDICT_REQUEST_H_
