#include "server/wire/example_values.h"

#include <algorithm>
#include <cstring>

#include "server/wire/reader.h"

namespace colcast {
namespace {

constexpr uint8_t kBytesListTag = MakeTag(1, kLengthType);
constexpr uint8_t kFloatListTag = MakeTag(2, kLengthType);
constexpr uint8_t kInt64ListTag = MakeTag(3, kLengthType);
constexpr uint8_t kPackedTag = MakeTag(1, kLengthType);  // tag of "value" in every list
constexpr uint8_t kVarintTag = MakeTag(1, kVarintType);
constexpr uint8_t kFixed32Tag = MakeTag(1, kFixed32Type);
constexpr uint8_t kStringValTag = MakeTag(8, kLengthType);

uint8_t ListTagOf(DataType dtype) {
  return dtype == DT_STRING ? kBytesListTag : dtype == DT_FLOAT ? kFloatListTag : kInt64ListTag;
}

struct Run {
  const uint8_t* at;
  const uint8_t* end;
  size_t size() const { return end - at; }
};

// Enters a record with this tag that spans all of `run`; false if there is none.
bool EnterOnly(uint8_t tag, Run* run) {
  if (run->at == run->end || *run->at != tag) return false;
  ++run->at;
  size_t length;
  return ReadLength(&run->at, run->end, &length) && length == run->size();
}

// Opens the list of `dtype`, which must span the whole Feature.
bool OpenList(DataType dtype, std::string_view feature, Run* list) {
  list->at = reinterpret_cast<const uint8_t*>(feature.data());
  list->end = list->at + feature.size();
  return EnterOnly(ListTagOf(dtype), list);
}

// Refuses a varint with bits beyond the 64th, so that TensorFlow's parser, which drops them, reads
// the Example.
bool ReadVarint(Run* run, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (run->at == run->end) return false;
    const uint8_t byte = *run->at++;
    if (shift == 63 && byte > 1) return false;
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void Put(const void* value, size_t size, int64_t index, void* out) {
  std::memcpy(static_cast<uint8_t*>(out) + index * size, value, size);
}

int64_t ReadInt64s(Run list, int64_t most, void* out) {
  if (list.at == list.end) return 0;
  const bool packed = *list.at == kPackedTag;
  if (packed && !EnterOnly(kPackedTag, &list)) return kUnreadable;
  int64_t count = 0;
  while (list.at != list.end) {
    if (!packed && *list.at++ != kVarintTag) return kUnreadable;
    uint64_t value;
    if (count == most || !ReadVarint(&list, &value)) return kUnreadable;
    Put(&value, sizeof(value), count++, out);
  }
  return count;
}

int64_t ReadFloats(Run list, int64_t most, void* out) {
  constexpr size_t kSize = sizeof(float);
  if (list.at == list.end) return 0;
  if (*list.at == kPackedTag) {
    if (!EnterOnly(kPackedTag, &list) || list.size() % kSize != 0) return kUnreadable;
    const auto count = static_cast<int64_t>(list.size() / kSize);
    if (count > most) return kUnreadable;
    if (count > 0) std::memcpy(out, list.at, list.size());
    return count;
  }
  int64_t count = 0;
  for (; list.at != list.end; list.at += 1 + kSize) {
    if (list.size() < 1 + kSize || *list.at != kFixed32Tag || count == most) return kUnreadable;
    Put(list.at + 1, kSize, count++, out);
  }
  return count;
}

// BytesList.value and TensorProto.string_val differ only in their tag.
int64_t AppendStrings(Run list, std::string* out) {
  int64_t count = 0;
  size_t written = out->size();
  if (list.at == list.end) return 0;
  out->append(reinterpret_cast<const char*>(list.at), list.size());
  for (; list.at != list.end; ++count) {
    const uint8_t* const record = list.at;
    if (*list.at++ != kPackedTag) return kUnreadable;
    size_t length;
    if (!ReadLength(&list.at, list.end, &length)) return kUnreadable;
    list.at += length;
    (*out)[written] = static_cast<char>(kStringValTag);
    written += list.at - record;
  }
  return count;
}

}  // namespace

int64_t ReadNumbers(DataType dtype, std::string_view feature, int64_t most, void* out) {
  Run list;
  if (!OpenList(dtype, feature, &list)) return kUnreadable;
  return dtype == DT_FLOAT ? ReadFloats(list, most, out) : ReadInt64s(list, most, out);
}

int64_t AppendValues(DataType dtype, std::string_view feature, std::string* out) {
  Run list;
  if (!OpenList(dtype, feature, &list)) return kUnreadable;
  if (dtype == DT_STRING) return AppendStrings(list, out);
  const size_t before = out->size(), size = ElementSize(dtype);
  // An upper bound: every number takes at least one byte, and a float takes its full size.
  const size_t most = dtype == DT_FLOAT ? list.size() / size : list.size();
  out->resize(before + most * size);
  char* const values = out->data() + before;
  const int64_t count =
      dtype == DT_FLOAT ? ReadFloats(list, most, values) : ReadInt64s(list, most, values);
  out->resize(before + std::max<int64_t>(count, 0) * size);
  return count;
}

}  // namespace colcast
