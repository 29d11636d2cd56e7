// Decodes tensorflow.TensorProto into a Column, inside DecodePredictRequest.
#ifndef COLCAST_SERVER_WIRE_TENSOR_DECODER_H_
#define COLCAST_SERVER_WIRE_TENSOR_DECODER_H_

#include <array>
#include <cstdint>

#include "server/wire/predict_request.h"
#include "server/wire/reader.h"

namespace colcast {

// Decodes the TensorProto of one column, which may arrive as several messages to be merged: call
// Begin, then Merge for each message, then Finish.
class TensorDecoder {
 public:
  // REQUIRES an empty `column`.
  void Begin(Column* column);

  // Returns false if the message is malformed. At most `depth` levels of messages may nest below
  // it.
  bool Merge(Reader message, int depth);

  void Finish();

 private:
  static constexpr uint32_t kMaxFieldNumber = 18;

  // The number of a field whose values do not count for a dtype with the field `own`; else 0.
  uint32_t IgnoredField(uint32_t own) const;
  bool MergeField(uint32_t tag, Reader* message, int depth);
  bool MergeDtype(Reader* message);
  bool MergeShape(Reader shape, int depth);

  // Merge one record of a repeated field, packed or with a single value.
  bool MergeVarints(uint32_t tag, Reader* message);
  bool MergeFixed(uint32_t tag, uint32_t value_size, Reader* message);
  bool MergeStrings(Reader* message);  // this record and those directly after it
  void CountPacked(uint32_t field_number, int64_t count, const Bytes& body);
  void CountUnpacked(uint32_t field_number, int64_t count);

  Column* column_ = nullptr;

  // Values are counted for every field, whatever the dtype, because the dtype may come last.
  std::array<int64_t, kMaxFieldNumber + 1> counts_;
  bool message_has_values_;
  uint32_t first_field_;  // field of the first record with values; 0 before that record
  bool only_body_known_;  // that record is packed, and no other record has values of the field
  Bytes only_body_;
  Bytes float8_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_TENSOR_DECODER_H_
