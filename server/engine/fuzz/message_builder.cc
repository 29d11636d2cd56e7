#include "server/engine/fuzz/message_builder.h"

#include <iterator>
#include <string_view>

#include "server/wire/writer.h"

namespace colcast::fuzz {
namespace {

constexpr int kMaxDepth = 6;

class Builder {
 public:
  explicit Builder(Decisions* decisions) : d_(*decisions) {}

  std::string Request() {
    std::string message;
    const uint32_t fields = 1 + d_.Below(6);
    for (uint32_t i = 0; i < fields; ++i) {
      switch (d_.Below(10)) {
        case 0:
          message += LengthField(1, ModelSpec());
          break;
        case 1:
          message += LengthField(3, Name());
          break;
        case 2:
          message += LengthField(5 + d_.Below(3), Options());
          break;
        case 3:
          message += Unknown(kMaxDepth);
          break;
        default:
          message += LengthField(2, Entry());
      }
    }
    Damage(&message);
    return message;
  }

 private:
  std::string Varint(uint64_t value) { return BuildVarint(value, d_.OneIn(16), &d_); }

  std::string Tag(uint32_t number, uint32_t wire_type) {
    if (d_.OneIn(32)) wire_type = d_.Below(8);
    return Varint(number << 3 | wire_type);
  }

  std::string LengthField(uint32_t number, const std::string& body) {
    const size_t size = d_.OneIn(64) ? d_.Byte() : body.size();
    return Tag(number, kLengthType) + Varint(size) + body;
  }

  std::string VarintField(uint32_t number, uint64_t value) {
    return Tag(number, kVarintType) + Varint(value);
  }

  std::string Raw(size_t size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(d_.Byte());
    return bytes;
  }

  std::string Name() {
    static constexpr std::string_view kNames[] = {
        "", "a", "b", "caf\xc3\xa9", "\xf0\x9f\x8e\xac", "\xff", "a longer name than eight"};
    return std::string(d_.OneIn(8) ? Raw(d_.Below(5)) : kNames[d_.Below(std::size(kNames))]);
  }

  std::string ModelSpec() {
    std::string message;
    for (uint32_t i = d_.Below(5); i > 0; --i) {
      switch (d_.Below(5)) {
        case 0:
          message += LengthField(2, d_.OneIn(3) ? "" : VarintField(1 + d_.Below(2), d_.Number()));
          break;
        case 1:
          message += Unknown(kMaxDepth);
          break;
        default:
          message += LengthField(1 + d_.Below(4), Name());
      }
    }
    return message;
  }

  std::string Options() {
    std::string message;
    for (uint32_t i = d_.Below(4); i > 0; --i) {
      const uint32_t number = 1 + d_.Below(13);
      message += d_.OneIn(2) ? VarintField(number, d_.Number())
                             : LengthField(number, d_.OneIn(2) ? Name() : Options());
    }
    return message;
  }

  // Nests about as many groups around `body` as protobuf allows.
  std::string DeepGroups(std::string body) {
    for (uint32_t i = 92 + d_.Below(12); i > 0; --i) {
      body = "\x9b\x06" + body + "\x9c\x06";
    }
    return body;
  }

  // Nests a TensorProto in variant_val fields, to about the maximum depth.
  std::string DeepTensor(std::string tensor) {
    for (uint32_t i = 44 + d_.Below(8); i > 0; --i) {
      tensor = LengthField(15, LengthField(3, tensor));
    }
    return tensor;
  }

  std::string Unknown(int depth) {
    if (d_.OneIn(128)) return DeepGroups("");
    const uint32_t number = d_.OneIn(4) ? d_.Number() : d_.Below(20);
    switch (d_.Below(5)) {
      case 0:
        return VarintField(number, d_.Number());
      case 1:
        return Tag(number, kFixed64Type) + Raw(8);
      case 2:
        return Tag(number, kFixed32Type) + Raw(4);
      case 3:
        return LengthField(number, Raw(d_.Below(8)));
      default: {
        std::string body;
        for (uint32_t i = depth > 0 ? d_.Below(3) : 0; i > 0; --i) body += Unknown(depth - 1);
        return Tag(number, kStartGroupType) + body + Tag(number, kEndGroupType);
      }
    }
  }

  std::string Entry() {
    std::string message;
    if (!d_.OneIn(16)) message += LengthField(1, Name());
    for (uint32_t i = d_.OneIn(8) ? d_.Below(4) : 1; i > 0; --i) {
      const std::string tensor = Tensor(kMaxDepth);
      message += LengthField(2, d_.OneIn(128) ? DeepTensor(tensor) : tensor);
    }
    if (d_.OneIn(16)) message += LengthField(1, Name());
    if (d_.OneIn(16)) message += Unknown(kMaxDepth);
    return message;
  }

  std::string Shape() {
    std::string message;
    for (uint32_t i = d_.Below(4); i > 0; --i) {
      std::string dim;
      if (!d_.OneIn(16)) dim += VarintField(1, d_.OneIn(8) ? d_.Number() : d_.Below(7));
      if (d_.OneIn(16)) dim += LengthField(2, Name());
      if (d_.OneIn(16)) dim += Unknown(1);
      message += LengthField(2, dim);
    }
    if (d_.OneIn(32)) message += VarintField(3, d_.Below(2));
    return message;
  }

  std::string Tensor(int depth) {
    // Pairs each dtype with the field of its values, so that most tensors are meaningful.
    struct Choice {
      uint8_t dtype, field;
    };
    static constexpr Choice kChoices[] = {
        {1, 5},   {2, 6},   {3, 7},   {4, 7},   {5, 7},   {6, 7},   {7, 8},   {8, 9},   {9, 10},
        {10, 11}, {11, 7},  {12, 7},  {13, 7},  {14, 13}, {15, 7},  {16, 7},  {17, 7},  {18, 12},
        {19, 13}, {22, 16}, {23, 17}, {24, 18}, {25, 18}, {26, 18}, {27, 18}, {28, 18}, {29, 7},
        {30, 7},  {31, 7},  {32, 7},  {20, 14}, {21, 15}, {0, 5},   {101, 5}, {33, 7}};
    const Choice choice = kChoices[d_.Below(std::size(kChoices))];
    std::string message;
    if (!d_.OneIn(16)) message += VarintField(1, choice.dtype);
    if (!d_.OneIn(8)) message += LengthField(2, Shape());
    for (uint32_t i = d_.Below(4); i > 0; --i) {
      const uint32_t field = d_.OneIn(8) ? 1 + d_.Below(19) : choice.field;
      message += Values(field, depth);
    }
    if (d_.OneIn(4)) message += LengthField(4, Content());
    if (d_.OneIn(16)) message += VarintField(1, choice.dtype);
    if (d_.OneIn(16)) message += Unknown(depth);
    return message;
  }

  std::string Content() {
    static constexpr uint8_t kSizes[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
    return Raw(kSizes[d_.Below(std::size(kSizes))]);
  }

  // Writes values of one of TensorProto's fields.
  std::string Values(uint32_t field, int depth) {
    const uint32_t count = d_.OneIn(8) ? d_.Below(20) : d_.Below(5);
    switch (field) {
      case 5:
      case 9:
        return Repeated(field, kFixed32Type, count, [this] { return Raw(4); });
      case 6:
      case 12:
        return Repeated(field, kFixed64Type, count, [this] { return Raw(8); });
      case 7:
      case 10:
      case 11:
      case 13:
      case 16:
      case 17:
        return Repeated(field, kVarintType, count, [this] { return Varint(d_.Number()); });
      case 8: {
        std::string records;
        for (uint32_t i = 0; i < count; ++i) records += LengthField(8, Raw(d_.Below(4)));
        return records;
      }
      case 14:
        return LengthField(14, d_.OneIn(2) ? ModelSpec() : LengthField(6, LengthField(2, Shape())));
      case 15:
        return LengthField(15, depth == 0    ? ""
                               : d_.OneIn(2) ? LengthField(3, Tensor(depth - 1))
                                             : LengthField(1 + d_.Below(2), Name()));
      default:
        return LengthField(field, Raw(d_.Below(6)));
    }
  }

  template <typename Value>
  std::string Repeated(uint32_t field, WireType wire_type, uint32_t count, Value&& value) {
    const bool packed = !d_.OneIn(4);
    std::string records;
    for (uint32_t i = 0; i < count; ++i) {
      records += packed ? value() : Tag(field, wire_type) + value();
    }
    return packed ? LengthField(field, records) : records;
  }

  void Damage(std::string* message) {
    if (message->empty() || !d_.OneIn(8)) return;
    for (uint32_t i = 1 + d_.Below(3); i > 0; --i) {
      const size_t at = (d_.Byte() << 8 | d_.Byte()) % message->size();
      (*message)[at] = static_cast<char>(d_.Byte());
    }
  }

  Decisions& d_;
};

}  // namespace

uint8_t Decisions::Byte() {
  if (size_ == 0) return 0;
  --size_;
  return *data_++;
}

uint64_t Decisions::Number() {
  const uint8_t choice = Byte();
  if (choice < 128) return choice;
  if (choice < 192) return (uint64_t{1} << (choice & 63)) - (Byte() & 3);
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | Byte();
  return number;
}

std::string BuildVarint(uint64_t value, bool is_padded, Decisions* decisions) {
  std::string bytes;
  AppendVarint(value, &bytes);
  for (uint32_t i = is_padded ? decisions->Below(11) : 0; i > 0; --i) {
    bytes.back() |= static_cast<char>(0x80);
    bytes += '\0';
  }
  return bytes;
}

std::string BuildRequest(Decisions* decisions) { return Builder(decisions).Request(); }

}  // namespace colcast::fuzz
