// Decodes tensorflow.TensorProto into a Column, inside DecodePredictRequest().
#ifndef COLCAST_SERVER_WIRE_TENSOR_DECODER_H_
#define COLCAST_SERVER_WIRE_TENSOR_DECODER_H_

#include <cstdint>

#include "server/wire/column.h"
#include "server/wire/reader.h"

namespace colcast {

// Decodes the TensorProto of one column, which may arrive as several messages to be merged. Call
// Merge() for each message, then Finish().
class TensorDecoder {
 public:
  // REQUIRES an empty `column`.
  explicit TensorDecoder(Column* column) : column_(*column) {}

  template <typename AnyReader>
  bool Merge(AnyReader message) {
    // Protobuf's libraries write these two fields first; expecting them saves a branch on the tag.
    if (!MergeNext<MakeTag(1, kVarintType)>(&message)) return false;
    if (!MergeNext<MakeTag(2, kLengthType)>(&message)) return false;
    has_values_ = false;
    AnyReader before_values = message;
    while (!message.done()) {
      uint32_t tag;
      if (!has_values_) before_values = message;
      if (!message.ReadTag(&tag)) return false;
      if (!MergeField(tag, &message)) return Failed(tag, &message);
    }
    if (!has_values_) return true;
    if (first_message_.empty()) {
      first_message_ = before_values.Rest();
    } else {
      column_.values.messages.push_back(before_values.Rest());
    }
    return true;
  }

  void Finish() {
    ColumnValues& values = column_.values;
    const ValueField field = ValueFieldOf(column_.dtype);
    values.ignored_field = IgnoredField(static_cast<uint32_t>(field));
    if (field == ValueField::kNone) return;
    if (field == ValueField::kFloat8) {
      values.count = static_cast<int64_t>(float8_.size());
      values.packed = true;
      values.payload = float8_;
      return;
    }
    const bool is_first = static_cast<uint32_t>(field) == field_;
    values.packed = is_first && is_one_packed_;
    if (values.packed) {
      values.payload = body_;
    } else if (!first_message_.empty()) {
      values.messages.insert(values.messages.begin(), first_message_);
    }
    values.count = is_first ? count_ : 0;
  }

 private:
  template <typename AnyReader>
  static bool Failed(uint32_t tag, AnyReader* message) {
    message->AddField(tag);
    return false;
  }

  // Merges the next field if it has this tag.
  template <uint32_t tag, typename AnyReader>
  [[gnu::always_inline]] bool MergeNext(AnyReader* message) {
    return !message->SkipTag(tag) || MergeField(tag, message) || Failed(tag, message);
  }

  template <typename AnyReader>
  [[gnu::always_inline]] bool MergeField(uint32_t tag, AnyReader* message) {
    AnyReader nested;
    uint64_t number;
    switch (tag) {
      case MakeTag(1, kVarintType):  // dtype
        if (!message->ReadVarint(&number)) return false;
        column_.dtype = static_cast<DataType>(static_cast<int32_t>(number));
        return true;
      case MakeTag(2, kLengthType):  // tensor_shape
        return message->ReadNested(&nested) && MergeShape(nested);
      case MakeTag(4, kLengthType):  // tensor_content
        return message->ReadBytes(&column_.values.tensor_content);
      case MakeTag(8, kLengthType):  // string_val
        return MergeStrings(message);
      case MakeTag(18, kLengthType):  // float8_val
        return message->ReadBytes(&float8_);
      default:
        return MergeNumbers(tag, message);
    }
  }

  template <typename AnyReader>
  bool MergeShape(AnyReader shape) {
    return ReadFields(&shape, [&](uint32_t tag) {
      if (tag == MakeTag(2, kLengthType)) {
        AnyReader dim;
        int64_t size;
        if (!shape.ReadNested(&dim) || !ReadDim(dim, &size)) return false;
        AddDim(size, &column_.dims);
        return true;
      }
      if (tag != MakeTag(3, kVarintType)) return shape.SkipValue(tag);
      uint64_t unknown_rank;
      if (!shape.ReadVarint(&unknown_rank)) return false;
      column_.unknown_rank = unknown_rank != 0;
      return true;
    });
  }

  // Reads a TensorShapeProto.Dim.
  template <typename AnyReader>
  static bool ReadDim(AnyReader dim, int64_t* size) {
    *size = 0;
    return ReadFields(&dim, [&](uint32_t tag) {
      Bytes ignored_name;
      if (tag == MakeTag(2, kLengthType)) return dim.ReadText(&ignored_name);
      if (tag != MakeTag(1, kVarintType)) return dim.SkipValue(tag);
      uint64_t value;
      if (!dim.ReadVarint(&value)) return false;
      *size = static_cast<int64_t>(value);
      return true;
    });
  }

  // Merges one record of a repeated field of numbers; skips any other field.
  template <typename AnyReader>
  bool MergeNumbers(uint32_t tag, AnyReader* message) {
    // float_val to int_val, scomplex_val to half_val, uint32_val and uint64_val
    constexpr uint32_t kNumbers = 0x7u << 5 | 0x1fu << 9 | 0x3u << 16;
    const uint32_t field = FieldNumberOf(tag);
    if (field > 17 || (kNumbers >> field & 1) == 0) return message->SkipValue(tag);
    const WireType type = UnpackedTypeOf(static_cast<ValueField>(field));
    Bytes body;
    int64_t count = 1;
    if (WireTypeOf(tag) == type) {
      if (!message->SkipValue(tag)) return false;
    } else if (WireTypeOf(tag) != kLengthType) {
      return message->SkipValue(tag);
    } else if (!message->ReadPacked(type, &body, &count)) {
      return false;
    }
    Count(field, count, body);
    return true;
  }

  // Merges the record whose tag was read, and the string_val records directly after it.
  template <typename AnyReader>
  bool MergeStrings(AnyReader* message) {
    constexpr uint32_t kTag = MakeTag(static_cast<uint32_t>(ValueField::kString), kLengthType);
    int64_t count = 0;
    do {
      Bytes ignored_value;
      if (!message->ReadBytes(&ignored_value)) return false;
      ++count;
      message->ReadShortRecords(kTag, [&](const uint8_t*, size_t) { ++count; });
    } while (message->SkipTag(kTag));
    Count(FieldNumberOf(kTag), count, {});
    return true;
  }

  // `packed` is empty for values that are not packed.
  void Count(uint32_t field, int64_t count, const Bytes& packed) {
    if (count == 0) return;
    has_values_ = true;
    fields_ |= 1u << field;
    if (field_ == 0) {
      field_ = field;
      count_ = count;
      is_one_packed_ = !packed.empty();
      body_ = packed;
    } else if (field_ == field) {
      count_ += count;
      is_one_packed_ = false;
    }
  }

  // The number of a field whose values are ignored, because the values of the column's dtype belong
  // in the field `own` or are in tensor_content; 0 if there is no such field.
  uint32_t IgnoredField(uint32_t own) const {
    constexpr auto kFloat8 = static_cast<uint32_t>(ValueField::kFloat8);
    const bool has_content = !column_.values.tensor_content.empty();
    if (!float8_.empty() && (own != kFloat8 || has_content)) return kFloat8;
    const uint32_t ignored = has_content ? fields_ : fields_ & ~(1u << own);
    return ignored == 0 ? 0 : __builtin_ctz(ignored);
  }

  Column& column_;
  bool has_values_ = false;     // the current message has records with values
  Bytes first_message_;         // the first message with values, from its first value on
  uint32_t field_ = 0;          // the field of the first record with values; 0 before that record
  int64_t count_ = 0;           // the number of values in that field
  bool is_one_packed_ = false;  // whether these values are all in one packed record
  Bytes body_;                  // that record's body
  uint32_t fields_ = 0;         // the set of fields with values
  Bytes float8_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_TENSOR_DECODER_H_
