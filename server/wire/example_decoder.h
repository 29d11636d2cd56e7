// Decodes serialized tf.Examples into columns, in one pass over their bytes.
//
// Ranking clients send N Examples that each repeat the user, and they write the features of every
// Example in the same order. So the decoder expects each feature where the first Example had it,
// which takes a comparison and no hash; a feature with the same bytes in all Examples becomes a
// column of one row.
//
// TensorFlow's parser (core/util/example_proto_fast_parsing.cc) defines what Examples mean. The
// decoder produces exactly the parser's values, and leaves everything unusual, wrong or unclear to
// it: repeated keys, bytes that are not an Example, missing required features, kinds or sizes other
// than declared, Features that protobuf would merge.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_DECODER_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/bytes.h"
#include "server/wire/example_column.h"
#include "server/wire/example_features.h"
#include "server/wire/predict_request.h"

namespace colcast {

class ExampleDecoder {
 public:
  // Reads `examples` as a parse of `features` would. Returns false, without columns, if TensorFlow
  // must read them: in the cases above, if there are no examples, or if padding to the longest list
  // would take far more memory than the examples do.
  bool Decode(const ExampleFeatures& features, const std::vector<Bytes>& examples);

  // One column for each column of `features`, in the same order, with one row or one row per
  // example (always the latter for ExampleFeatures::item()). The columns point into this object and
  // `features`, and are valid until the next Decode().
  Span<Column> columns() const { return Span<Column>(columns_.data(), column_count_); }

  // The memory that this object keeps for its next use.
  size_t KeptBytes() const;

  // The bytes that columns save: N - 1 times the bytes of the features that all N examples repeat.
  int64_t repeated_bytes() const { return repeated_bytes_; }

 private:
  // Where the first Example has a feature.
  struct Slot {
    std::string_view entry;  // the entry of the map Features.feature
    std::string_view key;
    std::string_view feature;  // its value, a serialized Feature, which ends the entry
    const char* message_end;   // the end of the Features message that holds it
    // Its index in `features`; features.size() for a feature that the parse does not read.
    size_t index;
  };

  void Begin(const ExampleFeatures& features, const std::vector<Bytes>& examples);
  std::string_view Contiguous(const Bytes& example);

  bool ReadFirst(std::string_view example);
  bool ReadOther(int64_t row, std::string_view example);
  bool ReadFeatures(int64_t row, const char* at, const char* end);

  // Consumes entries at `*at` while they equal the first Example's entries, except for values.
  bool ReadExpected(int64_t row, const char** at, const char* end);

  // Records that `row` has a feature; false if the row had it already.
  bool Mark(int64_t row, size_t index);

  bool PadsTooMuch() const;

  const ExampleFeatures* features_ = nullptr;
  std::vector<ExampleColumn> states_;  // one per feature; the first features_->size() are in use
  std::vector<int64_t> last_row_;      // per feature: the last row that has it
  size_t found_ = 0;                   // number of features of the current row
  std::vector<Slot> slots_;            // features of the first Example
  // For each feature, the index of the slot after its own; 0 if the feature has no slot.
  std::vector<size_t> slot_after_;
  size_t slot_ = 0;     // the slot expected next
  std::string joined_;  // copies of the Examples that span several slices
  size_t size_ = 0;     // bytes of all Examples
  int64_t repeated_bytes_ = 0;
  std::vector<Column> columns_;
  size_t column_count_ = 0;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_DECODER_H_
