#include "server/items/table_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/wire/data_type.h"
#include "server/wire/feature_json.h"

namespace colcast::items {

using tables::StoredTensor;

namespace {

// Row numbers have 32 bits. The first is reserved for the defaults, and the highest for deltas.
constexpr int64_t kMostRows = 0xf0000000;

// The most keys per bucket of the index. A correctly sized index does not exceed this by chance.
constexpr uint32_t kMostInBucket = 1024;

constexpr size_t kMostShownBytes = 60;

// Reads `count` strings from the tensors NAME/offsets and NAME/bytes.
Texts ReadTexts(const std::string& name, int64_t count, Safetensors* read) {
  const StoredTensor offsets = read->Tensor(name + "/offsets", "I64", {count + 1});
  const StoredTensor bytes = read->List(name + "/bytes", "U8");
  return {read->Rising<int64_t>(name + "/offsets", offsets, static_cast<int64_t>(bytes.bytes)),
          reinterpret_cast<const char*>(bytes.data)};
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

Status TableFile::Read(Kind kind, Safetensors* read, std::shared_ptr<const TableFile>* file) {
  std::shared_ptr<TableFile> made(new TableFile(*read));
  made->ReadHeader(kind, read);
  if (read->ok()) made->ReadFeatures(read);
  if (!read->ok()) return read->status();
  made->keys_ = made->ReadKeys("key", made->header_.rows, read);
  if (read->ok()) made->ReadIndex(read);
  for (size_t i = 0; i < made->features().size() && read->ok(); ++i) {
    made->columns_.push_back(made->ReadColumn(made->features()[i], read));
  }
  if (kind == Kind::kDelta) made->deleted_ = made->ReadDeleted(read);
  if (read->ok()) *file = std::move(made);
  return read->status();
}

void TableFile::ReadHeader(Kind kind, Safetensors* read) {
  read->OneOf("kind", {kind == Kind::kTable ? "table" : "delta"});
  header_.domain = read->Text("model_domain");
  header_.key = read->Text("key");
  header_.has_text_keys = read->OneOf("key_dtype", {"int64", "string"}) == "string";
  header_.features = read->Text("features");
  header_.checksum = read->Text("checksum");
  header_.rows = read->Number("rows");
  header_.created = read->Number("created");
  if (header_.rows > kMostRows) read->Fail("header: ", header_.rows, " rows");
}

void TableFile::ReadFeatures(Safetensors* read) {
  rapidjson::Document document;
  if (!ParseJson(header_.features, &document) || !document.IsArray()) {
    return read->Fail("header: __metadata__ features is not a JSON list");
  }
  std::vector<ExampleFeature> features;
  for (const auto& recorded : document.GetArray()) {
    ExampleFeature& feature = features.emplace_back();
    if (!ReadText(recorded, "name", &feature.name) || !ReadFeature(recorded, &feature)) {
      return read->Fail("header: __metadata__ features: entry ", features.size() - 1, ", \"",
                        Readable(feature.name), "\", is not one that an item table can hold");
    }
  }
  const Status status = ExampleFeatures::Create(std::move(features), &features_);
  if (!status.ok()) read->Fail("header: __metadata__ features: ", status.message);
}

Keys TableFile::ReadKeys(const std::string& name, int64_t rows, Safetensors* read) const {
  if (header_.has_text_keys) return {true, {}, ReadTexts(name, rows, read)};
  return {false, read->Tensor(name + "/values", "I64", {rows}).values<int64_t>(), {}};
}

Keys TableFile::ReadDeleted(Safetensors* read) const {
  const StoredTensor* const found =
      read->Find(header_.has_text_keys ? "deleted/offsets" : "deleted/values");
  if (found == nullptr) return {};
  const int64_t entries = found->shape.empty() ? 0 : found->shape[0];
  return ReadKeys("deleted", entries - (header_.has_text_keys ? 1 : 0), read);
}

void TableFile::ReadIndex(Safetensors* read) {
  const StoredTensor starts = read->List("index/starts", "U32");
  bucket_rows_ = read->Tensor("index/rows", "U32", {header_.rows}).values<uint32_t>();
  if (!read->ok()) return;
  const size_t count = starts.values<uint32_t>().size();
  constexpr int kMostBits = 32;
  while (bits_ < kMostBits && (size_t{1} << bits_) + 1 < count) ++bits_;
  if ((size_t{1} << bits_) + 1 != count) {
    return read->Fail("tensor \"index/starts\" has ", count,
                      " numbers, expected one more than a power of two");
  }
  starts_ = read->Rising<uint32_t>("index/starts", starts, header_.rows);
  for (size_t bucket = 0; bucket + 1 < starts_.size() && read->ok(); ++bucket) {
    CheckBucket(bucket, read);
  }
}

// Checks that the rows belong in the bucket and that no key is repeated. The index has as many
// entries as the table has rows, so this implies that each row occurs once.
void TableFile::CheckBucket(size_t bucket, Safetensors* read) const {
  const uint32_t begin = starts_[bucket], end = starts_[bucket + 1];
  if (end - begin > kMostInBucket) {
    return read->Fail("tensor \"index/starts\": bucket ", bucket, " has ", end - begin,
                      " rows, at most ", kMostInBucket, " are allowed");
  }
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t row = bucket_rows_[i];
    if (row >= header_.rows) {
      return read->Fail("\"index/rows\"[", i, "] is ", row, ", but there are ", header_.rows,
                        " rows");
    }
    const std::string_view key = keys_[row];
    if (BucketOf(HashOf(key)) != bucket) {
      return read->Fail("\"index/rows\"[", i, "]: row ", row, ", key ",
                        KeyText(key, header_.has_text_keys), ", is in the wrong bucket, ", bucket);
    }
    for (uint32_t k = begin; k < i; ++k) {
      if (bucket_rows_[k] == row || keys_[bucket_rows_[k]] == key) {
        return read->Fail("key ", KeyText(key, header_.has_text_keys), " appears twice, in rows ",
                          bucket_rows_[k], " and ", row);
      }
    }
  }
}

TableColumn TableFile::ReadColumn(const ExampleFeatures::Entry& feature, Safetensors* read) const {
  const std::string name = "column/" + feature.feature.name;
  TableColumn column;
  int64_t values = header_.rows;
  if (feature.feature.kind != FeatureKind::kFixedLen) {
    const StoredTensor splits = read->Tensor(name + "/splits", "I64", {header_.rows + 1});
    if (!read->ok()) return column;
    values = splits.values<int64_t>()[header_.rows];
    column.splits = read->Rising<int64_t>(name + "/splits", splits, std::max<int64_t>(values, 0));
  }
  const DataType dtype = feature.feature.dtype;
  if (dtype == DT_STRING) {
    int64_t strings = 0;
    if (__builtin_mul_overflow(values, feature.size, &strings) || strings == INT64_MAX) {
      read->Fail("tensor \"", Readable(name), "/splits\" ends with ", values);
    } else {
      column.texts = ReadTexts(name, strings, read);
    }
    return column;
  }
  std::vector<int64_t> shape = {values};
  shape.insert(shape.end(), feature.feature.shape.begin(), feature.feature.shape.end());
  const StoredTensor numbers = read->Tensor(name, tables::StoredDtypeOf(dtype), shape);
  column.numbers = numbers.data;
  for (size_t i = 0; i < numbers.bytes && dtype == DT_BOOL; ++i) {
    if (numbers.data[i] <= 1) continue;
    read->Fail("offset ", numbers.offset + i, ": \"", Readable(name), "\" has the byte ",
               int{numbers.data[i]}, ", but a bool is 0 or 1");
  }
  return column;
}

}  // namespace colcast::items
