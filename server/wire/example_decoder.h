// Serialized tf.Examples -> columns, in one pass over their bytes.
//
// Ranking clients send N Examples that each repeat the user. They write the features of each in the
// order of the one before, so a feature is expected where the first Example had it, which takes a
// comparison and no hash; and where it has the same bytes in all Examples, its column is one row.
//
// TensorFlow's parser (core/util/example_proto_fast_parsing.cc) is the definition of what Examples
// mean. What is read here has exactly the values that it gives; everything that is unusual, wrong
// or merely unclear is refused, and left to it: repeated keys, bytes that are no Example, missing
// required features, other kinds or sizes than declared, Features that protobuf would merge.
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
#include "server/wire/span.h"

namespace colcast {

class ExampleDecoder {
 public:
  // Reads `examples` as a parse of `features` does. False if they are left to TensorFlow: see
  // above; then there are no columns. No examples are refused, too, and those whose padding to the
  // longest list would take far more memory than they do.
  bool Decode(const ExampleFeatures& features, const std::vector<Bytes>& examples);

  // One for each column of `features`, in their order: one row or as many as there are examples,
  // of ExampleFeatures::item() always the latter. They point into this object and `features`, and
  // hold until the next Decode().
  Span<Column> columns() const { return Span<Column>(columns_.data(), column_count_); }

  // Of the examples, altogether.
  size_t bytes() const { return size_; }

  // Bytes of the examples that were a feature of all of them repeated: those of N - 1.
  int64_t repeated_bytes() const { return repeated_bytes_; }

 private:
  // A feature where the first Example has it.
  struct Slot {
    std::string_view entry;  // the record of the map Features.feature
    std::string_view key;
    std::string_view feature;  // its value, a serialized Feature, which ends the record
    const char* message_end;   // of the Features it is in
    size_t index;              // in features, or beyond them: one that the parse does not read
  };

  void Begin(const ExampleFeatures& features, const std::vector<Bytes>& examples);
  std::string_view Contiguous(const Bytes& example);

  bool ReadFirst(std::string_view example);
  bool ReadOther(int64_t row, std::string_view example);
  bool ReadFeatures(int64_t row, const char* at, const char* end);

  // Steps over entries at `*at` as far as they are those of the first Example, but for values.
  bool ReadExpected(int64_t row, const char** at, const char* end);

  // Notes that `row` has a feature; false if it had it before.
  bool Mark(int64_t row, size_t index);

  bool PadsTooMuch() const;

  const ExampleFeatures* features_ = nullptr;
  std::vector<ExampleColumn> states_;  // by feature; the first features_->size() are in use
  std::vector<int64_t> last_row_;      // by feature: where it was found last
  size_t found_ = 0;                   // features of this row
  std::vector<Slot> slots_;            // the first Example's
  std::vector<size_t> slot_after_;     // by feature: the one behind its own
  size_t slot_ = 0;                    // expected next
  std::string joined_;                 // the Examples that lie in several slices
  size_t size_ = 0;                    // of all Examples
  int64_t repeated_bytes_ = 0;
  std::vector<Column> columns_;
  size_t column_count_ = 0;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_DECODER_H_
