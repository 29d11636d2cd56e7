#include "server/tables/safetensors.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/wire/feature_json.h"

namespace colcast::tables {
namespace {

using rapidjson::Value;

// Parsing a header takes about 50 times its size in memory. The limit allows 10,000 features; a
// small file must have a small header.
constexpr uint64_t kMostHeaderBytes = 8 << 20;
constexpr uint64_t kHeaderBytesOfAnyFile = 1 << 20;

constexpr std::pair<std::string_view, DataType> kDtypes[] = {
    {"BOOL", DT_BOOL},  {"I8", DT_INT8},   {"U8", DT_UINT8},      {"I16", DT_INT16},
    {"U16", DT_UINT16}, {"F16", DT_HALF},  {"BF16", DT_BFLOAT16}, {"I32", DT_INT32},
    {"U32", DT_UINT32}, {"F32", DT_FLOAT}, {"I64", DT_INT64},     {"U64", DT_UINT64},
    {"F64", DT_DOUBLE}};

// Returns 0 for an unsupported dtype.
size_t SizeOf(std::string_view stored) {
  for (const auto& [name, dtype] : kDtypes) {
    if (name == stored) return ElementSize(dtype);
  }
  return 0;
}

// Returns false unless `list` is a list of non-negative integers.
bool ReadNumbers(const Value* list, std::vector<int64_t>* numbers) {
  if (list == nullptr || !list->IsArray()) return false;
  for (const Value& number : list->GetArray()) {
    if (!number.IsInt64() || number.GetInt64() < 0) return false;
    numbers->push_back(number.GetInt64());
  }
  return true;
}

// Reads the tensor that `declared`, an entry of the header, describes. `data` begins at
// `data_offset` in the file.
Status ReadTensor(const Value& declared, std::string_view data, size_t data_offset,
                  StoredTensor* tensor) {
  const auto wrong = [](const auto&... parts) { return Error(StatusCode::kDataLoss, parts...); };
  std::vector<int64_t> offsets;
  if (!ReadText(declared, "dtype", &tensor->dtype) ||
      !ReadNumbers(Member(declared, "shape"), &tensor->shape) ||
      !ReadNumbers(Member(declared, "data_offsets"), &offsets) || offsets.size() != 2) {
    return wrong("expected dtype, shape and two data_offsets");
  }
  const size_t element = SizeOf(tensor->dtype);
  if (element == 0) return wrong("dtype ", Readable(tensor->dtype), " is not supported");
  const auto begin = static_cast<size_t>(offsets[0]), end = static_cast<size_t>(offsets[1]);
  if (begin > end || end > data.size()) {
    return wrong("bytes ", begin, " to ", end, " of ", data.size(), " bytes of data");
  }
  tensor->bytes = element;
  for (const int64_t dim : tensor->shape) {
    if (__builtin_mul_overflow(tensor->bytes, static_cast<size_t>(dim), &tensor->bytes)) {
      tensor->bytes = SIZE_MAX;
    }
  }
  if (tensor->bytes != end - begin) {
    return wrong(end - begin, " bytes for shape ", ShapeName(tensor->shape), " of ", tensor->dtype);
  }
  tensor->offset = data_offset + begin;
  if (tensor->offset % element != 0) {
    return wrong("offset ", tensor->offset, " of the file is not aligned to ", element);
  }
  tensor->data = reinterpret_cast<const uint8_t*>(data.data()) + begin;
  return OkStatus();
}

}  // namespace

uint64_t HashOf(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string ChecksumOf(std::string_view data) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, HashOf(data));
  return text;
}

std::string_view StoredDtypeOf(DataType dtype) {
  for (const auto& [name, known] : kDtypes) {
    if (known == dtype) return name;
  }
  return {};
}

Safetensors::Safetensors(std::string_view bytes, std::shared_ptr<const void> owner,
                         const std::string& format, std::function<Status()> load)
    : bytes_(bytes), owner_(std::move(owner)), load_(std::move(load)) {
  const std::string_view header = Header();
  if (ok()) ReadHeader(header);
  OneOf("format", {format});
  OneOf("format_version", {"1"});
  if (load_ == nullptr) CheckData();
}

size_t Safetensors::HeaderBytes(std::string_view bytes, size_t size) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return kLengthBytes + (length <= kMostHeaderBytes && length <= size - kLengthBytes ? length : 0);
}

void Safetensors::CheckData() {
  const std::string expected = Text("checksum");
  if (!ok()) return;
  const std::string found = ChecksumOf(data_);
  if (found == expected) return;
  Fail("offset ", data_offset_, ": the data's checksum is ", found, ", expected ",
       Readable(expected));
}

std::string_view Safetensors::Header() {
  if (bytes_.size() < kLengthBytes) {
    Fail("offset 0: ", bytes_.size(), " bytes, too few for the header's length");
    return {};
  }
  uint64_t length;
  std::memcpy(&length, bytes_.data(), sizeof(length));
  const size_t rest = bytes_.size() - kLengthBytes;
  if (length > kMostHeaderBytes) {
    Fail("offset 0: a header of ", length, " bytes, at most ", kMostHeaderBytes,
         " are allowed: is this a safetensors file, little-endian?");
  } else if (length > rest) {
    Fail("offset 0: a header of ", length, " bytes in a file of ", bytes_.size());
  } else if (length > kHeaderBytesOfAnyFile + rest - length) {
    Fail("offset 0: a header of ", length, " bytes for ", rest - length, " bytes of data");
  }
  if (!ok()) return {};
  data_offset_ = kLengthBytes + length;
  data_ = bytes_.substr(data_offset_);
  return bytes_.substr(kLengthBytes, length);
}

void Safetensors::ReadHeader(std::string_view header) {
  rapidjson::Document document;
  if (!ParseJson(header, &document) || !document.IsObject()) {
    return Fail("offset ", kLengthBytes, ": the header is not a JSON object");
  }
  for (const auto& [key, value] : document.GetObject()) {
    const std::string name(colcast::Text(key));
    if (name != "__metadata__") {
      StoredTensor tensor;
      Status status = ReadTensor(value, data_, data_offset_, &tensor);
      if (!status.ok()) Fail("header: tensor \"", Readable(name), "\": ", status.message);
      if (!tensors_.emplace(name, std::move(tensor)).second) {
        Fail("header: tensor \"", Readable(name), "\": appears twice");
      }
      continue;
    }
    if (!value.IsObject()) return Fail("header: __metadata__ is not an object");
    for (const auto& [entry, text] : value.GetObject()) {
      const std::string_view named = colcast::Text(entry);
      if (!text.IsString()) {
        return Fail("header: __metadata__ ", Readable(named), " is not a string");
      }
      metadata_[std::string(named)] = std::string(colcast::Text(text));
    }
  }
}

std::string Safetensors::Text(const char* name) {
  const auto found = metadata_.find(name);
  if (found == metadata_.end()) Fail("header: __metadata__ has no ", name);
  return ok() ? found->second : "";
}

std::string Safetensors::OneOf(const char* name, const std::vector<std::string>& expected) {
  std::string text = Text(name);
  std::string listed;
  for (const std::string& one : expected) {
    if (text == one) return text;
    listed += (listed.empty() ? "" : " or ") + one;
  }
  Fail("header: __metadata__ ", name, " is ", Readable(text), ", expected ", listed);
  return "";
}

int64_t Safetensors::Number(const char* name) {
  const std::string text = Text(name);
  const char* const end = text.data() + text.size();
  int64_t number = 0;
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stopped == end && number >= 0) return number;
  Fail("header: __metadata__ ", name, " is ", Readable(text), ", expected a number of at least 0");
  return 0;
}

const StoredTensor* Safetensors::Find(const std::string& name) {
  if (ok() && load_ != nullptr) {
    status_ = std::exchange(load_, nullptr)();
    if (ok()) CheckData();
  }
  const auto found = tensors_.find(name);
  return found == tensors_.end() || !ok() ? nullptr : &found->second;
}

StoredTensor Safetensors::Tensor(const std::string& name, std::string_view dtype,
                                 const std::vector<int64_t>& shape) {
  const StoredTensor* const found = Find(name);
  if (found == nullptr) {
    Fail("there is no tensor \"", Readable(name), "\"");
  } else if (found->dtype != dtype || found->shape != shape) {
    Fail("tensor \"", Readable(name), "\" is ", found->dtype, ShapeName(found->shape),
         ", expected ", dtype, ShapeName(shape));
  }
  return ok() ? *found : StoredTensor();
}

StoredTensor Safetensors::List(const std::string& name, std::string_view dtype) {
  const StoredTensor* const found = Find(name);
  const bool is_list = found != nullptr && found->shape.size() == 1;
  return Tensor(name, dtype, is_list ? found->shape : std::vector<int64_t>{0});
}

template <typename T>
Span<T> Safetensors::Rising(const std::string& name, const StoredTensor& tensor, int64_t last) {
  const Span<T> numbers = tensor.values<T>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t before = i == 0 ? 0 : numbers[i - 1];
    const bool wrong = i == 0 ? numbers[i] != 0 : numbers[i] < numbers[i - 1];
    if (wrong) {
      Fail("offset ", tensor.offset + i * sizeof(T), ": \"", Readable(name), "\"[", i, "] is ",
           numbers[i], ", after ", before);
      return {};
    }
  }
  const int64_t ends = numbers.empty() ? -1 : numbers[numbers.size() - 1];
  if (ends != last) Fail("tensor \"", Readable(name), "\" ends with ", ends, ", expected ", last);
  return ok() ? numbers : Span<T>();
}

template Span<int64_t> Safetensors::Rising(const std::string&, const StoredTensor&, int64_t);
template Span<uint32_t> Safetensors::Rising(const std::string&, const StoredTensor&, int64_t);

}  // namespace colcast::tables
