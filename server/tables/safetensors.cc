#include "server/tables/safetensors.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/wire/data_type.h"
#include "server/wire/feature_json.h"

namespace colcast::tables {
namespace {

using rapidjson::Value;

// Parsing a header takes some 50 times its size in memory. The limit fits 10,000 features; a small
// file must have a small header.
constexpr uint64_t kMostHeaderBytes = 8 << 20;
constexpr uint64_t kHeaderBytesOfAnyFile = 1 << 20;
constexpr size_t kLengthBytes = sizeof(uint64_t);

// 0 for a dtype that is not used here.
size_t SizeOf(std::string_view dtype) {
  if (dtype == "I64" || dtype == "U64" || dtype == "F64") return 8;
  if (dtype == "I32" || dtype == "U32" || dtype == "F32") return 4;
  if (dtype == "I16" || dtype == "U16" || dtype == "F16" || dtype == "BF16") return 2;
  return dtype == "I8" || dtype == "U8" || dtype == "BOOL" ? 1 : 0;
}

Status HeaderOf(std::string_view bytes, std::string_view* header) {
  if (bytes.size() < kLengthBytes) {
    return Wrong("offset 0: ", bytes.size(), " bytes, too few for the header's length");
  }
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMostHeaderBytes) {
    return Wrong("offset 0: a header of ", length, " bytes, at most ", kMostHeaderBytes,
                 " are allowed: is this a safetensors file, little-endian?");
  }
  if (length > bytes.size() - kLengthBytes) {
    return Wrong("offset 0: a header of ", length, " bytes in a file of ", bytes.size());
  }
  const size_t data_bytes = bytes.size() - kLengthBytes - length;
  if (length > kHeaderBytesOfAnyFile + data_bytes) {
    return Wrong("offset 0: a header of ", length, " bytes for ", data_bytes, " bytes of data");
  }
  *header = bytes.substr(kLengthBytes, length);
  return OkStatus();
}

Status ReadMetadata(const Value& metadata, Safetensors* read) {
  if (!metadata.IsObject()) return Wrong("header: __metadata__ is not an object");
  for (const auto& member : metadata.GetObject()) {
    if (!member.value.IsString()) {
      return Wrong("header: __metadata__ ", Readable(Text(member.name)), " is not a string");
    }
    read->metadata[std::string(Text(member.name))] = std::string(Text(member.value));
  }
  return OkStatus();
}

// False unless it is a list of non-negative integers.
bool ReadNumbers(const Value* list, std::vector<int64_t>* numbers) {
  if (list == nullptr || !list->IsArray()) return false;
  for (const Value& number : list->GetArray()) {
    if (!number.IsInt64() || number.GetInt64() < 0) return false;
    numbers->push_back(number.GetInt64());
  }
  return true;
}

Status ReadTensor(const std::string& name, const Value& declared, Safetensors* read) {
  const std::string where = "header: tensor \"" + Readable(name) + "\": ";
  StoredTensor tensor;
  std::vector<int64_t> offsets;
  if (!ReadText(declared, "dtype", &tensor.dtype) ||
      !ReadNumbers(Member(declared, "shape"), &tensor.shape) ||
      !ReadNumbers(Member(declared, "data_offsets"), &offsets) || offsets.size() != 2) {
    return Wrong(where, "expected dtype, shape and two data_offsets");
  }
  const size_t element = SizeOf(tensor.dtype);
  if (element == 0) return Wrong(where, "dtype ", Readable(tensor.dtype), " is not supported");
  const auto begin = static_cast<size_t>(offsets[0]), end = static_cast<size_t>(offsets[1]);
  if (begin > end || end > read->data.size()) {
    return Wrong(where, "bytes ", begin, " to ", end, " of ", read->data.size(), " bytes of data");
  }
  size_t bytes = element;
  for (const int64_t dim : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes)) bytes = SIZE_MAX;
  }
  if (bytes != end - begin) {
    return Wrong(where, end - begin, " bytes for shape ", ShapeName(tensor.shape), " of ",
                 tensor.dtype);
  }
  tensor.offset = read->data_offset + begin;
  if (tensor.offset % element != 0) {
    return Wrong(where, "offset ", tensor.offset, " of the file is not aligned to ", element);
  }
  tensor.bytes = bytes;
  tensor.data = reinterpret_cast<const uint8_t*>(read->data.data()) + begin;
  if (!read->tensors.emplace(name, std::move(tensor)).second) return Wrong(where, "appears twice");
  return OkStatus();
}

Status CheckOverlap(const Safetensors& read) {
  std::vector<std::pair<const StoredTensor*, std::string_view>> by_offset;
  for (const auto& [name, tensor] : read.tensors) {
    if (tensor.bytes > 0) by_offset.emplace_back(&tensor, name);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto& a, const auto& b) { return a.first->offset < b.first->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const auto& [before, name] = by_offset[i - 1];
    if (before->offset + before->bytes > by_offset[i].first->offset) {
      return Wrong("offset ", by_offset[i].first->offset, ": tensors \"", Readable(name),
                   "\" and \"", Readable(by_offset[i].second), "\" overlap");
    }
  }
  return OkStatus();
}

}  // namespace

Status ReadSafetensors(std::string_view bytes, Safetensors* read) {
  std::string_view header;
  if (Status status = HeaderOf(bytes, &header); !status.ok()) return status;
  read->data_offset = kLengthBytes + header.size();
  read->data = bytes.substr(read->data_offset);
  rapidjson::Document document;
  if (!ParseJson(header, &document) || !document.IsObject()) {
    return Wrong("offset ", kLengthBytes, ": the header is not a JSON object");
  }
  for (const auto& member : document.GetObject()) {
    const std::string name(Text(member.name));
    Status status = name == "__metadata__" ? ReadMetadata(member.value, read)
                                           : ReadTensor(name, member.value, read);
    if (!status.ok()) return status;
  }
  return CheckOverlap(*read);
}

}  // namespace colcast::tables
