#include "server/tables/checked_tensors.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "server/wire/data_type.h"

namespace colcast::tables {

uint64_t HashOf(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string ChecksumOf(std::string_view data) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, HashOf(data));
  return text;
}

Status FindText(const Safetensors& read, const char* name, std::string* text) {
  const auto found = read.metadata.find(name);
  if (found == read.metadata.end()) return Wrong("header: __metadata__ has no ", name);
  *text = found->second;
  return OkStatus();
}

Status FindNumber(const Safetensors& read, const char* name, int64_t* number) {
  std::string text;
  if (Status status = FindText(read, name, &text); !status.ok()) return status;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *number);
  if (error == std::errc() && stopped == end && *number >= 0) return OkStatus();
  return Wrong("header: __metadata__ ", name, " is ", Readable(text),
               ", expected a number of at least 0");
}

Status ExpectText(const Safetensors& read, const char* name, const std::string& expected) {
  std::string text;
  Status status = FindText(read, name, &text);
  if (!status.ok() || text == expected) return status;
  return Wrong("header: __metadata__ ", name, " is ", Readable(text), ", expected ", expected);
}

Status CheckData(const Safetensors& read, const std::string& checksum) {
  const std::string found = ChecksumOf(read.data);
  if (found == checksum) return OkStatus();
  return Wrong("offset ", read.data_offset, ": the data's checksum is ", found, ", expected ",
               Readable(checksum));
}

Status FindTensor(const Safetensors& read, const std::string& name, const char* dtype,
                  const std::vector<int64_t>& shape, const StoredTensor** tensor) {
  const auto found = read.tensors.find(name);
  if (found == read.tensors.end()) return Wrong("there is no tensor \"", Readable(name), "\"");
  *tensor = &found->second;
  if ((*tensor)->dtype == dtype && (*tensor)->shape == shape) return OkStatus();
  return Wrong("tensor \"", Readable(name), "\" is ", (*tensor)->dtype, ShapeName((*tensor)->shape),
               ", expected ", dtype, ShapeName(shape));
}

Status FindList(const Safetensors& read, const std::string& name, const char* dtype,
                const StoredTensor** tensor) {
  const auto found = read.tensors.find(name);
  const bool has_one = found != read.tensors.end() && found->second.shape.size() == 1;
  return FindTensor(read, name, dtype, has_one ? found->second.shape : std::vector<int64_t>{0},
                    tensor);
}

template <typename T>
Status CheckRising(const std::string& name, const StoredTensor& tensor, int64_t last) {
  const Span<T> numbers = tensor.values<T>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t before = i == 0 ? 0 : numbers[i - 1];
    const bool wrong = i == 0 ? numbers[i] != 0 : numbers[i] < numbers[i - 1];
    if (wrong) {
      return Wrong("offset ", tensor.offset + i * sizeof(T), ": \"", Readable(name), "\"[", i,
                   "] is ", numbers[i], ", after ", before);
    }
  }
  const int64_t ends = numbers.empty() ? -1 : numbers[numbers.size() - 1];
  if (ends == last) return OkStatus();
  return Wrong("tensor \"", Readable(name), "\" ends with ", ends, ", expected ", last);
}

template Status CheckRising<int64_t>(const std::string&, const StoredTensor&, int64_t);
template Status CheckRising<uint32_t>(const std::string&, const StoredTensor&, int64_t);

Status CheckBools(const std::string& name, const StoredTensor& bools) {
  for (size_t i = 0; i < bools.bytes; ++i) {
    if (bools.data[i] <= 1) continue;
    return Wrong("offset ", bools.offset + i, ": \"", Readable(name), "\" has the byte ",
                 int{bools.data[i]}, ", but a bool is 0 or 1");
  }
  return OkStatus();
}

const char* StoredDtypeOf(DataType dtype) {
  switch (dtype) {
    case DT_BOOL:
      return "BOOL";
    case DT_INT8:
      return "I8";
    case DT_INT16:
      return "I16";
    case DT_INT32:
      return "I32";
    case DT_INT64:
      return "I64";
    case DT_UINT8:
      return "U8";
    case DT_UINT16:
      return "U16";
    case DT_UINT32:
      return "U32";
    case DT_UINT64:
      return "U64";
    case DT_HALF:
      return "F16";
    case DT_BFLOAT16:
      return "BF16";
    case DT_FLOAT:
      return "F32";
    case DT_DOUBLE:
      return "F64";
    default:
      return "";
  }
}

}  // namespace colcast::tables
