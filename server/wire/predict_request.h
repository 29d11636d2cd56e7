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
#include "server/wire/column.h"
#include "server/wire/name_table.h"

namespace colcast {

// The prefix of index inputs' names. An index, int64 [N], holds each candidate's row of a domain.
inline constexpr std::string_view kRowTo = "row_to_";

inline bool IsRowIndex(std::string_view input) { return input.substr(0, kRowTo.size()) == kRowTo; }

struct ModelSpec {
  std::string name;
  std::optional<int64_t> version;
  std::optional<std::string> version_label;  // never together with version
  std::string signature_name;                // empty: the default signature
};

// A decoded request. Its views point into the message and into the object itself: while it is in
// use, the message's bytes, its array of slices and any other source of values must stay unchanged.
// Reusable: Clear() keeps the memory, so a worker's request soon decodes without allocating.
class DecodedRequest {
 public:
  DecodedRequest() = default;
  DecodedRequest(const DecodedRequest&) = delete;
  DecodedRequest& operator=(const DecodedRequest&) = delete;

  ModelSpec model_spec;
  std::string_view id;  // the client's, returned with the answer; may be empty
  std::vector<std::string_view> output_filter;  // as sent: in order, duplicates included

  // The inputs, each name once, in order of their first occurrence.
  Span<Column> columns() const { return {columns_.data(), column_count_}; }
  Column* mutable_column(size_t index) { return &columns_[index]; }

  // Returns null if no input has this name. Not thread-safe: it fills a table.
  const Column* Find(std::string_view name) const;

  void Clear();

  // The memory of the columns, including what Clear() keeps, but not the message.
  size_t MemoryBytes() const;

  // Adds a column, whose dtype, dims and values the caller sets. REQUIRES that no column has this
  // name. The pointer is valid until the next column is added.
  Column* AddColumn(std::string_view name);

  // Moves the last column into the place of the removed one.
  void RemoveColumn(size_t index);

  // Returns a slot for an object that `owner` derives from the input names. If the next message has
  // the same names in the same order, the slot still holds the object, so that it need not be
  // derived again; otherwise the slot is null. Returns null if the columns are not those of a
  // decoded message.
  template <typename Owner>
  std::shared_ptr<const void>* MadeOfNames(const std::shared_ptr<Owner>& owner) {
    if (!as_decoded_) return nullptr;
    if (made_for_.owner_before(owner) || owner.owner_before(made_for_)) {
      made_for_ = owner;
      made_of_names_ = nullptr;
    }
    return &made_of_names_;
  }

  // Holds the bytes until Clear(), for views that point into them.
  std::string_view Keep(std::string bytes) { return kept_.emplace_back(std::move(bytes)); }

  // Holds stored values, or their source, until Clear().
  void Keep(std::shared_ptr<const void> stored) { stored_.push_back(std::move(stored)); }

 private:
  friend class InferRequestDecoder;
  friend class PredictRequestDecoder;

  NameTable& AllNames() const;
  // `as_before` says that the names equal the previous message's first names, perhaps all of them.
  void RememberNames(bool as_before);

  std::vector<Column> columns_;  // the first column_count_ are in use; the others only keep memory
  size_t column_count_ = 0;
  // The distinct names of the previous message, which the next one probably repeats.
  std::vector<std::string> names_before_;
  bool as_decoded_ = false;  // the columns have these names, in this order
  std::weak_ptr<const void> made_for_;
  std::shared_ptr<const void> made_of_names_;
  mutable NameTable names_;       // names of the first columns of columns_; filled when needed
  std::deque<std::string> kept_;  // bytes under views, such as names split across two buffers
  std::vector<std::shared_ptr<const void>> stored_;
};

// Decodes `message` into `request`, after clearing it, by protobuf's rules: the last of repeated
// map keys wins, sub-messages merge, repeated fields may be packed or not, unknown fields are
// skipped. Returns INVALID_ARGUMENT, naming field, input and byte, for anything that protobuf would
// refuse; `request` is then unspecified. Whether values fit their dtype and shape is checked later
// (server/wire/column.h). Sub-messages for other servers are not checked. Returns
// RESOURCE_EXHAUSTED for more than `max_columns` inputs, outputs in the filter, or messages merged
// into one tensor: each takes much more memory than its bytes on the wire.
Status DecodePredictRequest(const Bytes& message, DecodedRequest* request,
                            size_t max_columns = std::numeric_limits<size_t>::max());

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_PREDICT_REQUEST_H_
