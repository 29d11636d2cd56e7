#include "server/wire/tensor_decoder.h"

#include "server/base/text.h"
#include "server/wire/schema.h"
#include "server/wire/varint.h"

namespace colcast {
namespace {

// Reads a TensorShapeProto.Dim.
bool ReadDim(Reader dim, int depth, int64_t* size) {
  *size = 0;
  return ReadFields(&dim, [&](uint32_t tag) {
    if (tag == MakeTag(2, kLengthType)) {
      Bytes name;
      return dim.ReadBytes(&name) && IsValidUtf8(name);
    }
    if (tag != MakeTag(1, kVarintType)) return dim.SkipValue(tag, depth);
    uint64_t value;
    if (!dim.ReadVarint(&value)) return false;
    *size = static_cast<int64_t>(value);
    return true;
  });
}

bool CheckNested(const MessageSchema& schema, Reader* message, int depth) {
  Reader nested;
  return message->ReadNested(&nested) && CheckMessage(nested, schema, depth - 1, nullptr);
}

}  // namespace

void TensorDecoder::Begin(Column* column) {
  column_ = column;
  counts_.fill(0);
  first_field_ = 0;
  only_body_known_ = false;
  float8_ = Bytes();
}

bool TensorDecoder::Merge(Reader message, int depth) {
  Bytes from_first_value;
  message_has_values_ = false;
  while (!message.done()) {
    const Bytes from_here = message.Rest();
    const bool had_values = message_has_values_;
    uint32_t tag;
    if (!message.ReadTag(&tag) || !MergeField(tag, &message, depth)) return false;
    if (message_has_values_ && !had_values) from_first_value = from_here;
  }
  if (message_has_values_) column_->values.messages.push_back(from_first_value);
  return true;
}

void TensorDecoder::Finish() {
  ColumnValues& values = column_->values;
  const ValueField field = ValueFieldOf(column_->dtype);
  const auto number = static_cast<uint32_t>(field);
  values.ignored_field = IgnoredField(number);
  if (field == ValueField::kNone) {
    values.count = 0;
  } else if (field == ValueField::kFloat8) {
    values.count = static_cast<int64_t>(float8_.size());
    values.packed = true;
    values.payload = float8_;
  } else {
    values.count = counts_[number];
    values.packed = number == first_field_ && only_body_known_;
    if (values.packed) values.payload = only_body_;
  }
}

uint32_t TensorDecoder::IgnoredField(uint32_t own) const {
  const bool has_content = !column_->values.tensor_content.empty();
  if (!float8_.empty() && (kMaxFieldNumber != own || has_content)) return kMaxFieldNumber;
  if (first_field_ == 0) return 0;  // no values in any other field
  for (uint32_t number = 0; number <= kMaxFieldNumber; ++number) {
    if (counts_[number] > 0 && (number != own || has_content)) return number;
  }
  return 0;
}

bool TensorDecoder::MergeField(uint32_t tag, Reader* message, int depth) {
  switch (tag) {
    case MakeTag(1, kVarintType):  // dtype
      return MergeDtype(message);
    case MakeTag(2, kLengthType): {  // tensor_shape
      Reader shape;
      return message->ReadNested(&shape) && MergeShape(shape, depth - 1);
    }
    case MakeTag(4, kLengthType):
      return message->ReadBytes(&column_->values.tensor_content);
    case MakeTag(5, kLengthType):  // float_val
    case MakeTag(5, kFixed32Type):
    case MakeTag(9, kLengthType):  // scomplex_val
    case MakeTag(9, kFixed32Type):
      return MergeFixed(tag, 4, message);
    case MakeTag(6, kLengthType):  // double_val
    case MakeTag(6, kFixed64Type):
    case MakeTag(12, kLengthType):  // dcomplex_val
    case MakeTag(12, kFixed64Type):
      return MergeFixed(tag, 8, message);
    case MakeTag(7, kLengthType):  // int_val
    case MakeTag(7, kVarintType):
    case MakeTag(10, kLengthType):  // int64_val
    case MakeTag(10, kVarintType):
    case MakeTag(11, kLengthType):  // bool_val
    case MakeTag(11, kVarintType):
    case MakeTag(13, kLengthType):  // half_val
    case MakeTag(13, kVarintType):
    case MakeTag(16, kLengthType):  // uint32_val
    case MakeTag(16, kVarintType):
    case MakeTag(17, kLengthType):  // uint64_val
    case MakeTag(17, kVarintType):
      return MergeVarints(tag, message);
    case MakeTag(8, kLengthType):
      return MergeStrings(message);
    case MakeTag(14, kLengthType):
      return CheckNested(kResourceHandleProto, message, depth);
    case MakeTag(15, kLengthType):
      return CheckNested(kVariantTensorDataProto, message, depth);
    case MakeTag(18, kLengthType):
      return message->ReadBytes(&float8_);
    default:
      return message->SkipValue(tag, depth);
  }
}

bool TensorDecoder::MergeDtype(Reader* message) {
  uint64_t value;
  if (!message->ReadVarint(&value)) return false;
  column_->dtype = static_cast<DataType>(static_cast<int32_t>(value));
  return true;
}

bool TensorDecoder::MergeShape(Reader shape, int depth) {
  return ReadFields(&shape, [&](uint32_t tag) {
    if (tag == MakeTag(2, kLengthType)) {
      Reader dim;
      int64_t size;
      if (!shape.ReadNested(&dim) || !ReadDim(dim, depth - 1, &size)) return false;
      AddDim(size, &column_->dims);
      return true;
    }
    if (tag != MakeTag(3, kVarintType)) return shape.SkipValue(tag, depth);
    uint64_t unknown_rank;
    if (!shape.ReadVarint(&unknown_rank)) return false;
    column_->unknown_rank = unknown_rank != 0;
    return true;
  });
}

bool TensorDecoder::MergeVarints(uint32_t tag, Reader* message) {
  if (WireTypeOf(tag) == kVarintType) {
    uint64_t ignored_value;
    if (!message->ReadVarint(&ignored_value)) return false;
    CountUnpacked(FieldNumberOf(tag), 1);
    return true;
  }
  Bytes body;
  int64_t count;
  if (!message->ReadBytes(&body) || !CountVarints(body, &count)) return false;
  CountPacked(FieldNumberOf(tag), count, body);
  return true;
}

bool TensorDecoder::MergeFixed(uint32_t tag, uint32_t value_size, Reader* message) {
  if (WireTypeOf(tag) != kLengthType) {
    if (message->Rest().size() < value_size) return false;
    message->Take(value_size);
    CountUnpacked(FieldNumberOf(tag), 1);
    return true;
  }
  Bytes body;
  if (!message->ReadBytes(&body) || body.size() % value_size != 0) return false;
  CountPacked(FieldNumberOf(tag), static_cast<int64_t>(body.size() / value_size), body);
  return true;
}

bool TensorDecoder::MergeStrings(Reader* message) {
  constexpr auto kField = static_cast<uint32_t>(ValueField::kString);
  constexpr uint32_t kTag = MakeTag(kField, kLengthType);
  int64_t count = 0;
  do {
    Bytes ignored_value;
    if (!message->ReadBytes(&ignored_value)) return false;
    ++count;
    message->ReadShortRecords(kTag, [&](const uint8_t*, size_t) { ++count; });
  } while (message->SkipTag(kTag));
  CountUnpacked(kField, count);
  return true;
}

void TensorDecoder::CountPacked(uint32_t field_number, int64_t count, const Bytes& body) {
  if (count == 0) return;
  const bool first = first_field_ == 0;
  counts_[field_number] += count;
  message_has_values_ = true;
  if (first) {
    first_field_ = field_number;
    only_body_ = body;
    only_body_known_ = true;
  } else if (field_number == first_field_) {
    only_body_known_ = false;
  }
}

void TensorDecoder::CountUnpacked(uint32_t field_number, int64_t count) {
  counts_[field_number] += count;
  message_has_values_ = true;
  if (first_field_ == 0) first_field_ = field_number;
  if (field_number == first_field_) only_body_known_ = false;
}

}  // namespace colcast
