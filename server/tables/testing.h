// Safetensors files for tests, built entry by entry, so that a test can damage each one.
#ifndef COLCAST_SERVER_TABLES_TESTING_H_
#define COLCAST_SERVER_TABLES_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tables/safetensors.h"

namespace colcast::tables {

struct TestTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

template <typename T>
TestTensor TensorOf(const char* dtype, const std::vector<T>& values,
                    std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return {dtype, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

struct TestFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, TestTensor> tensors;

  void AddTexts(const std::string& name, const std::vector<std::string>& texts) {
    std::vector<int64_t> offsets = {0};
    std::string bytes;
    for (const std::string& text : texts) {
      bytes += text;
      offsets.push_back(static_cast<int64_t>(bytes.size()));
    }
    tensors[name + "/offsets"] = TensorOf("I64", offsets);
    tensors[name + "/bytes"] = {"U8", {static_cast<int64_t>(bytes.size())}, bytes};
  }

  // Returns the file's bytes. Adds the correct checksum unless the metadata has one.
  std::string Bytes() const {
    std::vector<std::pair<std::string, const TestTensor*>> ordered;
    for (const auto& [name, tensor] : tensors) ordered.emplace_back(name, &tensor);
    const auto size_of = [](const TestTensor& tensor) {
      return tensor.dtype == "I64" ? 8 : tensor.dtype == "U8" ? 1 : 4;
    };
    std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
      return size_of(*a.second) > size_of(*b.second);
    });
    std::string data, entries;
    for (const auto& [name, tensor] : ordered) {
      std::string shape;
      for (const int64_t dim : tensor->shape) {
        shape += (shape.empty() ? "" : ",") + std::to_string(dim);
      }
      const size_t begin = data.size();
      data += tensor->bytes;
      entries += ",\"" + name + "\":{\"dtype\":\"" + tensor->dtype + "\",\"shape\":[" + shape +
                 "],\"data_offsets\":[" + std::to_string(begin) + "," +
                 std::to_string(data.size()) + "]}";
    }
    std::map<std::string, std::string> all = metadata;
    all.emplace("checksum", ChecksumOf(data));
    std::string header = "{\"__metadata__\":{";
    for (const auto& [name, value] : all) {
      if (header.back() != '{') header += ',';
      header += "\"" + name + "\":\"";
      for (const char c : value) header += c == '"' ? std::string("\\\"") : std::string(1, c);
      header += '"';
    }
    header += "}" + entries + "}";
    while (header.size() % sizeof(uint64_t) != 0) header += ' ';
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
  }
};

// Bytes with the alignment that Safetensors requires.
struct TestBytes {
  explicit TestBytes(const std::string& bytes)
      : owner(std::make_shared<std::vector<uint64_t>>(bytes.size() / sizeof(uint64_t) + 1)),
        view(reinterpret_cast<const char*>(owner->data()), bytes.size()) {
    std::memcpy(owner->data(), bytes.data(), bytes.size());
  }

  std::shared_ptr<std::vector<uint64_t>> owner;
  std::string_view view;
};

inline void WriteTestFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_TESTING_H_
