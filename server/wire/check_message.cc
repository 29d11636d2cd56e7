#include <string_view>

#include "server/base/text.h"
#include "server/wire/data_type.h"
#include "server/wire/schema.h"

namespace colcast {
namespace {

const FieldSchema* FindField(const MessageSchema& schema, uint32_t number) {
  for (size_t i = 0; i < schema.field_count; ++i) {
    if (schema.fields[i].number == number) return &schema.fields[i];
  }
  return nullptr;
}

bool Blame(std::string_view reason, size_t offset, Malformed* malformed) {
  if (malformed != nullptr) {
    malformed->path.clear();
    malformed->reason = reason;
    malformed->offset = offset;
  }
  return false;
}

// For the path of a malformed map entry: ["key"] with the last key that can be read, or nothing.
std::string BracketedKeyOf(Reader entry) {
  std::string key;
  uint32_t tag;
  while (!entry.done() && entry.ReadTag(&tag)) {
    Bytes bytes;
    if (tag != MakeTag(1, kLengthType)) {
      if (!entry.SkipValue(tag, kMaxDepth)) break;
    } else if (!entry.ReadBytes(&bytes)) {
      break;
    } else if (IsValidUtf8(bytes)) {
      key = "[" + Quoted(bytes.ToString()) + "]";
    }
  }
  return key;
}

// Checks a length-delimited sub-message.
bool CheckNested(const FieldSchema& field, Reader* message, int depth, Malformed* malformed,
                 std::string* key) {
  const size_t start = message->offset();
  Reader nested;
  const bool is_entry = field.kind == FieldKind::kMapEntry;
  if (!message->ReadNested(&nested)) {
    if (is_entry && malformed != nullptr) *key = BracketedKeyOf(Reader(message->Rest()));
    return Blame(message->error(), start, malformed);
  }
  if (CheckMessage(nested, *field.message, depth - 1, malformed)) return true;
  if (is_entry && malformed != nullptr) *key = BracketedKeyOf(nested);
  return false;
}

bool CheckPacked(FieldKind kind, Reader* message, Malformed* malformed) {
  const size_t start = message->offset();
  Bytes body;
  if (!message->ReadBytes(&body)) return Blame(message->error(), start, malformed);
  int64_t ignored_count;
  if (kind == FieldKind::kRepeatedVarint && !CountVarints(body, &ignored_count)) {
    return Blame("a packed varint is cut off or longer than 10 bytes", start, malformed);
  }
  const size_t value_size = kind == FieldKind::kRepeatedFixed32   ? 4
                            : kind == FieldKind::kRepeatedFixed64 ? 8
                                                                  : 1;
  if (body.size() % value_size == 0) return true;
  return Blame("the packed field's " + std::to_string(body.size()) +
                   " bytes are not a multiple of " + std::to_string(value_size),
               start, malformed);
}

bool CheckString(Reader* message, Malformed* malformed) {
  const size_t start = message->offset();
  Bytes text;
  if (!message->ReadBytes(&text)) return Blame(message->error(), start, malformed);
  return IsValidUtf8(text) || Blame("not valid UTF-8", start, malformed);
}

// Checks the value that follows `tag`. `field` is null if the schema does not list the tag's
// number.
bool CheckValue(uint32_t tag, const FieldSchema* field, Reader* message, int depth,
                Malformed* malformed, std::string* key) {
  if (field != nullptr && WireTypeOf(tag) == kLengthType) {
    switch (field->kind) {
      case FieldKind::kPlain:
        break;
      case FieldKind::kString:
        return CheckString(message, malformed);
      case FieldKind::kMessage:
      case FieldKind::kMapEntry:
        return CheckNested(*field, message, depth, malformed, key);
      case FieldKind::kRepeatedVarint:
      case FieldKind::kRepeatedFixed32:
      case FieldKind::kRepeatedFixed64:
        return CheckPacked(field->kind, message, malformed);
    }
  }
  const size_t start = message->offset();
  return message->SkipValue(tag, depth) || Blame(message->error(), start, malformed);
}

}  // namespace

bool CheckMessage(Reader message, const MessageSchema& schema, int depth, Malformed* malformed) {
  if (depth < 0) return Blame("nested too deep", message.offset(), malformed);
  while (!message.done()) {
    const size_t start = message.offset();
    uint32_t tag;
    if (!message.ReadTag(&tag)) return Blame(message.error(), start, malformed);
    const FieldSchema* field = FindField(schema, FieldNumberOf(tag));
    std::string key;
    if (CheckValue(tag, field, &message, depth, malformed, &key)) continue;
    if (malformed != nullptr) {
      std::string name =
          field != nullptr ? field->name : "field " + std::to_string(FieldNumberOf(tag));
      malformed->path =
          name + key + (malformed->path.empty() ? std::string() : "." + malformed->path);
    }
    return false;
  }
  return true;
}

Status MalformedError(const char* message_name, const Malformed& malformed, size_t message_size) {
  return InvalidArgument("malformed ", message_name, ": ", malformed.path,
                         malformed.path.empty() ? "" : ": ", malformed.reason, " (byte ",
                         malformed.offset, " of ", message_size, ")");
}

}  // namespace colcast
