// Item table files for tests, built entry by entry, so that a test can damage each one.
#ifndef COLCAST_SERVER_ITEMS_TESTING_H_
#define COLCAST_SERVER_ITEMS_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/items/table_file.h"
#include "server/tables/testing.h"

namespace colcast::items {

using tables::TensorOf;
using tables::WriteTestFile;

struct TestFile : tables::TestFile {
  // Sets the number of rows and the index of the keys.
  void SetKeys(const std::vector<std::string>& keys, int bits) {
    std::vector<std::vector<uint32_t>> buckets(size_t{1} << bits);
    for (size_t row = 0; row < keys.size(); ++row) {
      const uint64_t hash = HashOf(keys[row]);
      buckets[bits == 0 ? 0 : hash >> (64 - bits)].push_back(static_cast<uint32_t>(row));
    }
    std::vector<uint32_t> starts = {0}, rows;
    for (const std::vector<uint32_t>& bucket : buckets) {
      rows.insert(rows.end(), bucket.begin(), bucket.end());
      starts.push_back(static_cast<uint32_t>(rows.size()));
    }
    tensors["index/starts"] = TensorOf("U32", starts);
    tensors["index/rows"] = TensorOf("U32", rows);
    metadata["rows"] = std::to_string(keys.size());
  }

  void SetNumberKeys(const std::vector<int64_t>& keys, int bits = 1) {
    std::vector<std::string> bytes;
    for (const int64_t& key : keys) {
      bytes.emplace_back(reinterpret_cast<const char*>(&key), sizeof(key));
    }
    SetKeys(bytes, bits);
    metadata["key_dtype"] = "int64";
    tensors["key/values"] = TensorOf("I64", keys);
  }

  void SetTextKeys(const std::vector<std::string>& keys, int bits = 1) {
    SetKeys(keys, bits);
    metadata["key_dtype"] = "string";
    AddTexts("key", keys);
  }
};

// A table of items by "item_id" with every kind of feature: price, size [2], name, tags and steps
// (lists of numbers; steps are padded with -1), words (lists of strings). Values are derived from
// the row's key.
inline TestFile MakeTestTable(const std::vector<int64_t>& keys) {
  TestFile file;
  file.metadata = {{"format", "colcast-items"}, {"format_version", "1"}, {"kind", "table"},
                   {"model_domain", "item"},    {"key", "item_id"},      {"created", "1700000000"}};
  file.metadata["features"] =
      R"([{"name":"name","kind":"fixed_len","dtype":"string","shape":[],"default":["?"]},)"
      R"({"name":"price","kind":"fixed_len","dtype":"float32","shape":[],"default":[0.5]},)"
      R"({"name":"size","kind":"fixed_len","dtype":"int64","shape":[2],"default":[7,8]},)"
      R"({"name":"steps","kind":"fixed_len_sequence","dtype":"int64","shape":[],"default":[-1]},)"
      R"({"name":"tags","kind":"var_len","dtype":"int64","shape":[],"default":null},)"
      R"({"name":"words","kind":"ragged","dtype":"string","shape":[],"default":null}])";
  file.SetNumberKeys(keys);
  std::vector<float> price;
  std::vector<int64_t> size, splits = {0}, values;
  std::vector<std::string> names, words;
  for (const int64_t key : keys) {
    price.push_back(static_cast<float>(key) + 0.25F);
    size.insert(size.end(), {key, -key});
    names.push_back("item " + std::to_string(key));
    for (int64_t step = 0; step < key % 3; ++step) {
      values.push_back(10 * key + step);
      words.push_back("w" + std::to_string(step));
    }
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  const auto rows = static_cast<int64_t>(keys.size());
  file.tensors["column/price"] = TensorOf("F32", price);
  file.tensors["column/size"] = TensorOf("I64", size, {rows, 2});
  file.AddTexts("column/name", names);
  for (const char* const list : {"steps", "tags", "words"}) {
    file.tensors["column/" + std::string(list) + "/splits"] = TensorOf("I64", splits);
  }
  file.tensors["column/steps"] = file.tensors["column/tags"] = TensorOf("I64", values);
  file.AddTexts("column/words", words);
  return file;
}

// A delta of the table with this checksum.
inline TestFile MakeTestDelta(const std::string& checksum, int64_t sequence,
                              const std::vector<int64_t>& keys,
                              const std::vector<int64_t>& deleted) {
  TestFile file = MakeTestTable(keys);
  file.metadata["kind"] = "delta";
  file.metadata["table_checksum"] = checksum;
  file.metadata["sequence"] = std::to_string(sequence);
  if (!deleted.empty()) file.tensors["deleted/values"] = TensorOf("I64", deleted);
  return file;
}

inline Status ReadTestFile(const std::string& bytes, std::shared_ptr<const TableFile>* file,
                           TableFile::Kind kind = TableFile::Kind::kTable) {
  const tables::TestBytes aligned(bytes);
  tables::Safetensors read(aligned.view, aligned.owner, kItemsFormat);
  return TableFile::Read(kind, &read, file);
}

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_TESTING_H_
