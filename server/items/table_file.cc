#include "server/items/table_file.h"

#include <cstring>
#include <utility>

#include "server/tables/file_bytes.h"
#include "server/wire/data_type.h"
#include "server/wire/feature_json.h"

namespace colcast::items {

using tables::FindList;
using tables::FindNumber;
using tables::FindTensor;
using tables::FindText;
using tables::StoredTensor;
using tables::Wrong;

namespace {

constexpr char kFormat[] = "colcast-items";
constexpr char kFormatVersion[] = "1";

// Rows have 32-bit numbers; the first number, and those of deltas, are reserved.
constexpr int64_t kMostRows = 0xf0000000;

// The most keys in one bucket of the index. With a correctly sized index, chance does not exceed
// it.
constexpr uint32_t kMostInBucket = 1024;

constexpr size_t kMostShownBytes = 60;

// Reads the tensors NAME/offsets and NAME/bytes of `count` strings.
Status ReadTexts(const Safetensors& read, const std::string& name, int64_t count, Texts* texts) {
  const StoredTensor* offsets = nullptr;
  const StoredTensor* bytes = nullptr;
  Status status = FindTensor(read, name + "/offsets", "I64", {count + 1}, &offsets);
  if (status.ok()) status = FindList(read, name + "/bytes", "U8", &bytes);
  if (status.ok()) {
    status = tables::CheckRising<int64_t>(name + "/offsets", *offsets,
                                          static_cast<int64_t>(bytes->bytes));
  }
  if (!status.ok()) return status;
  *texts = {offsets->values<int64_t>(), reinterpret_cast<const char*>(bytes->data)};
  return OkStatus();
}

}  // namespace

std::string KeyText(std::string_view key, bool is_text) {
  if (is_text) {
    const std::string_view shown = key.substr(0, kMostShownBytes);
    return "\"" + Readable(shown) + (shown.size() < key.size() ? "...\"" : "\"");
  }
  int64_t number = 0;
  std::memcpy(&number, key.data(), sizeof(number));
  return std::to_string(number);
}

Status TableFile::Read(std::string_view bytes, std::shared_ptr<const void> owner,
                       std::shared_ptr<const TableFile>* file) {
  std::shared_ptr<TableFile> made(new TableFile);
  made->owner_ = std::move(owner);
  Status status = made->ReadAll(bytes);
  if (status.ok()) *file = std::move(made);
  return status;
}

Status TableFile::ReadAll(std::string_view bytes) {
  bytes_ = bytes.size();
  Safetensors read;
  if (Status status = ReadSafetensors(bytes, &read); !status.ok()) return status;
  if (Status status = ReadHeader(read); !status.ok()) return status;
  if (Status status = tables::CheckData(read, header_.checksum); !status.ok()) return status;
  if (Status status = ReadFeatures(); !status.ok()) return status;
  Status status = ReadKeys(read, "key", header_.rows, &keys_);
  if (status.ok()) status = ReadIndex(read);
  for (size_t i = 0; i < features_->size() && status.ok(); ++i) {
    status = ReadColumn(read, (*features_)[i], &columns_.emplace_back());
  }
  if (!status.ok() || !header_.is_delta) return status;
  const auto deleted =
      read.tensors.find(header_.has_text_keys ? "deleted/offsets" : "deleted/values");
  if (deleted == read.tensors.end()) return OkStatus();
  const int64_t entries = deleted->second.shape.empty() ? 0 : deleted->second.shape[0];
  return ReadKeys(read, "deleted", entries - (header_.has_text_keys ? 1 : 0), &deleted_);
}

Status TableFile::ReadHeader(const Safetensors& read) {
  std::string kind, key_dtype;
  for (const Status& status :
       {tables::ExpectText(read, "format", kFormat),
        tables::ExpectText(read, "format_version", kFormatVersion), FindText(read, "kind", &kind),
        FindText(read, "model_domain", &header_.domain), FindText(read, "key", &header_.key),
        FindText(read, "key_dtype", &key_dtype), FindText(read, "features", &header_.features),
        FindText(read, "checksum", &header_.checksum), FindNumber(read, "rows", &header_.rows),
        FindNumber(read, "created", &header_.created)}) {
    if (!status.ok()) return status;
  }
  if (key_dtype != "int64" && key_dtype != "string") {
    return Wrong("header: __metadata__ key_dtype is ", Readable(key_dtype),
                 ", expected int64 or string");
  }
  if (kind != "table" && kind != "delta") {
    return Wrong("header: __metadata__ kind is ", Readable(kind), ", expected table or delta");
  }
  if (header_.rows > kMostRows) return Wrong("header: ", header_.rows, " rows");
  header_.has_text_keys = key_dtype == "string";
  header_.is_delta = kind == "delta";
  if (!header_.is_delta) return OkStatus();
  Status status = FindText(read, "table_checksum", &header_.table_checksum);
  return status.ok() ? FindNumber(read, "sequence", &header_.sequence) : status;
}

Status TableFile::ReadFeatures() {
  rapidjson::Document document;
  if (!ParseJson(header_.features, &document) || !document.IsArray()) {
    return Wrong("header: __metadata__ features is not a JSON list");
  }
  std::vector<ExampleFeature> features;
  for (const auto& recorded : document.GetArray()) {
    ExampleFeature& feature = features.emplace_back();
    if (!ReadText(recorded, "name", &feature.name) || !ReadFeature(recorded, &feature)) {
      return Wrong("header: __metadata__ features: entry ", features.size() - 1, ", \"",
                   Readable(feature.name), "\", is not one that an item table can hold");
    }
  }
  Status status = ExampleFeatures::Create(std::move(features), &features_);
  if (!status.ok()) return Wrong("header: __metadata__ features: ", status.message);
  return status;
}

Status TableFile::ReadKeys(const Safetensors& read, const std::string& name, int64_t rows,
                           Keys* keys) const {
  keys->are_texts = header_.has_text_keys;
  if (keys->are_texts) return ReadTexts(read, name, rows, &keys->texts);
  const StoredTensor* values = nullptr;
  Status status = FindTensor(read, name + "/values", "I64", {rows}, &values);
  if (status.ok()) keys->numbers = values->values<int64_t>();
  return status;
}

Status TableFile::ReadIndex(const Safetensors& read) {
  const StoredTensor* starts = nullptr;
  const StoredTensor* rows = nullptr;
  Status status = FindList(read, "index/starts", "U32", &starts);
  if (status.ok()) status = FindTensor(read, "index/rows", "U32", {header_.rows}, &rows);
  if (!status.ok()) return status;
  starts_ = starts->values<uint32_t>();
  bucket_rows_ = rows->values<uint32_t>();
  constexpr int kMostBits = 32;
  while (bits_ < kMostBits && (size_t{1} << bits_) + 1 < starts_.size()) ++bits_;
  if ((size_t{1} << bits_) + 1 != starts_.size()) {
    return Wrong("tensor \"index/starts\" has ", starts_.size(),
                 " numbers, expected one more than a power of two");
  }
  status = tables::CheckRising<uint32_t>("index/starts", *starts, header_.rows);
  for (size_t bucket = 0; bucket + 1 < starts_.size() && status.ok(); ++bucket) {
    status = CheckBucket(bucket);
  }
  return status;
}

// Checks that the rows belong in the bucket, and that no key is repeated. Since the index has as
// many entries as the table has rows, each row then occurs once.
Status TableFile::CheckBucket(size_t bucket) const {
  const uint32_t begin = starts_[bucket], end = starts_[bucket + 1];
  if (end - begin > kMostInBucket) {
    return Wrong("tensor \"index/starts\": bucket ", bucket, " has ", end - begin,
                 " rows, at most ", kMostInBucket, " are allowed");
  }
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t row = bucket_rows_[i];
    if (row >= header_.rows) {
      return Wrong("\"index/rows\"[", i, "] is ", row, ", but there are ", header_.rows, " rows");
    }
    const std::string_view key = keys_[row];
    if (BucketOf(HashOf(key)) != bucket) {
      return Wrong("\"index/rows\"[", i, "]: row ", row, ", key ",
                   KeyText(key, header_.has_text_keys), ", is in the wrong bucket, ", bucket);
    }
    for (uint32_t k = begin; k < i; ++k) {
      if (bucket_rows_[k] == row || keys_[bucket_rows_[k]] == key) {
        return Wrong("key ", KeyText(key, header_.has_text_keys), " appears twice, in rows ",
                     bucket_rows_[k], " and ", row);
      }
    }
  }
  return OkStatus();
}

Status TableFile::ReadColumn(const Safetensors& read, const ExampleFeatures::Entry& feature,
                             TableColumn* column) const {
  const std::string name = "column/" + feature.feature.name;
  int64_t values = header_.rows;
  if (feature.feature.kind != FeatureKind::kFixedLen) {
    const StoredTensor* splits = nullptr;
    Status status = FindTensor(read, name + "/splits", "I64", {header_.rows + 1}, &splits);
    if (!status.ok()) return status;
    column->splits = splits->values<int64_t>();
    values = column->splits[header_.rows];
    if (values < 0) return Wrong("tensor \"", Readable(name), "/splits\" ends with ", values);
    status = tables::CheckRising<int64_t>(name + "/splits", *splits, values);
    if (!status.ok()) return status;
  }
  if (feature.feature.dtype == DT_STRING) {
    int64_t strings = 0;
    if (__builtin_mul_overflow(values, feature.size, &strings) || strings == INT64_MAX) {
      return Wrong("tensor \"", Readable(name), "/splits\" ends with ", values);
    }
    return ReadTexts(read, name, strings, &column->texts);
  }
  std::vector<int64_t> shape = {values};
  shape.insert(shape.end(), feature.feature.shape.begin(), feature.feature.shape.end());
  const StoredTensor* numbers = nullptr;
  Status status =
      FindTensor(read, name, tables::StoredDtypeOf(feature.feature.dtype), shape, &numbers);
  if (!status.ok()) return status;
  column->numbers = numbers->data;
  return feature.feature.dtype == DT_BOOL ? tables::CheckBools(name, *numbers) : status;
}

}  // namespace colcast::items
