// A file of an item table: keys with an index, and one column per feature. A delta file contains
// the new and deleted rows. Format: docs/items.md.
#ifndef COLCAST_SERVER_ITEMS_TABLE_FILE_H_
#define COLCAST_SERVER_ITEMS_TABLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/tables/safetensors.h"
#include "server/wire/bytes.h"
#include "server/wire/example_features.h"

namespace colcast::items {

using tables::HashOf;
using tables::Safetensors;

// Concatenated strings.
struct Texts {
  Span<int64_t> offsets;  // one more than the number of strings
  const char* bytes = nullptr;

  std::string_view operator[](size_t i) const {
    return {bytes + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }
};

// Integer or text keys.
struct Keys {
  bool are_texts = false;
  Span<int64_t> numbers;
  Texts texts;

  size_t size() const {
    if (!are_texts) return numbers.size();
    return texts.offsets.empty() ? 0 : texts.offsets.size() - 1;
  }
  // The bytes that are hashed and compared: the text, or an int64's 8 little-endian bytes.
  std::string_view operator[](size_t i) const {
    if (are_texts) return texts[i];
    return {reinterpret_cast<const char*>(&numbers[i]), sizeof(int64_t)};
  }
};

// Formats a key for messages.
std::string KeyText(std::string_view key, bool is_text);

// The values of one feature for all rows.
struct TableColumn {
  // The start of each row's list, in steps of the feature's shape, then the end of the last list.
  // Empty if the feature is not a list.
  Span<int64_t> splits;
  const uint8_t* numbers = nullptr;
  Texts texts;
};

struct TableHeader {
  std::string domain;
  std::string key;  // the name of the key column
  bool has_text_keys = false;
  int64_t rows = 0;
  int64_t created = 0;   // seconds since the epoch
  std::string checksum;  // 16 hex digits
  std::string features;  // as canonical JSON
};

inline constexpr char kItemsFormat[] = "colcast-items";

class TableFile {
 public:
  // Reads and checks a file of this kind. Returns DATA_LOSS for the other kind or malformed
  // content; the error names the offset, the tensor or the key.
  enum class Kind : uint8_t { kTable, kDelta };
  static Status Read(Kind kind, Safetensors* read, std::shared_ptr<const TableFile>* file);

  const TableHeader& header() const { return header_; }
  int64_t rows() const { return header_.rows; }
  size_t bytes() const { return bytes_; }

  // One element per feature.
  const ExampleFeatures& features() const { return *features_; }
  const std::vector<TableColumn>& columns() const { return columns_; }

  const Keys& keys() const { return keys_; }
  const Keys& deleted() const { return deleted_; }  // only in a delta

  // The index. Bucket i lists the rows of the keys whose hashes begin with the bits of i.
  size_t BucketOf(uint64_t hash) const { return bits_ == 0 ? 0 : hash >> (64 - bits_); }
  Span<uint32_t> starts() const { return starts_; }
  Span<uint32_t> bucket_rows() const { return bucket_rows_; }

 private:
  explicit TableFile(const Safetensors& read) : owner_(read.owner()), bytes_(read.bytes()) {}

  void ReadHeader(Kind kind, Safetensors* read);
  void ReadFeatures(Safetensors* read);
  Keys ReadKeys(const std::string& name, int64_t rows, Safetensors* read) const;
  Keys ReadDeleted(Safetensors* read) const;
  void ReadIndex(Safetensors* read);
  void CheckBucket(size_t bucket, Safetensors* read) const;
  TableColumn ReadColumn(const ExampleFeatures::Entry& feature, Safetensors* read) const;

  const std::shared_ptr<const void> owner_;
  const size_t bytes_;
  TableHeader header_;
  std::unique_ptr<const ExampleFeatures> features_;
  std::vector<TableColumn> columns_;
  Keys keys_;
  Keys deleted_;
  int bits_ = 0;
  Span<uint32_t> starts_;
  Span<uint32_t> bucket_rows_;
};

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_TABLE_FILE_H_
