// Reads the safetensors file of an item table or a delta: a length, a JSON header with a format and
// a checksum, and consecutive tensors (docs/items.md). Trusts nothing: checks that tensors lie
// within the file and are aligned.
#ifndef COLCAST_SERVER_TABLES_SAFETENSORS_H_
#define COLCAST_SERVER_TABLES_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/data_type.h"

namespace colcast::tables {

// XXH3-64.
uint64_t HashOf(std::string_view bytes);

// The same hash as text: 16 hex digits.
std::string ChecksumOf(std::string_view data);

// The name that files use for a numeric dtype; empty if files cannot contain it.
std::string_view StoredDtypeOf(DataType dtype);

struct StoredTensor {
  std::string dtype;           // "I64", "F32", "BOOL" and so on
  std::vector<int64_t> shape;  // non-negative sizes
  const uint8_t* data = nullptr;
  size_t bytes = 0;   // determined by dtype and shape
  size_t offset = 0;  // offset in the file

  // REQUIRES that dtype corresponds to T.
  template <typename T>
  Span<T> values() const {
    return {reinterpret_cast<const T*>(data), bytes / sizeof(T)};
  }
};

// Used by one thread.
class Safetensors {
 public:
  // Reads `bytes`, which must be aligned to 8 and which `owner` keeps alive. The file must declare
  // `format` and contain the right checksum. With `load`, only the header needs to be in `bytes`:
  // `load` is called when the first tensor is requested, and reads the rest.
  Safetensors(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& format,
              std::function<Status()> load = nullptr);
  // Reads the first kLengthBytes of a file of `size` bytes, and returns how long these and the
  // header are; kLengthBytes if the length is invalid.
  static size_t HeaderBytes(std::string_view bytes, size_t size);
  static constexpr size_t kLengthBytes = sizeof(uint64_t);

  // The first error: DATA_LOSS, naming the entry and, where possible, the offset in the file. After
  // an error, the methods below return empty values.
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // Records an error, unless there was one before.
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (ok()) status_ = Error(StatusCode::kDataLoss, parts...);
  }

  const std::shared_ptr<const void>& owner() const { return owner_; }
  size_t bytes() const { return bytes_.size(); }

  // Metadata entries.
  std::string Text(const char* name);
  std::string OneOf(const char* name, const std::vector<std::string>& expected);
  int64_t Number(const char* name);  // at least 0

  // Returns null if there is no such tensor.
  const StoredTensor* Find(const std::string& name);
  // Fails unless the tensor exists with this dtype and shape.
  StoredTensor Tensor(const std::string& name, std::string_view dtype,
                      const std::vector<int64_t>& shape);
  // Fails unless the tensor exists with this dtype and has one dimension, of any length.
  StoredTensor List(const std::string& name, std::string_view dtype);
  // Returns the tensor's numbers, int64 or uint32. Fails unless they begin with 0, never decrease,
  // and end with `last`.
  template <typename T>
  Span<T> Rising(const std::string& name, const StoredTensor& tensor, int64_t last);

 private:
  std::string_view Header();
  void ReadHeader(std::string_view header);
  void CheckData();

  const std::string_view bytes_;
  const std::shared_ptr<const void> owner_;
  std::function<Status()> load_;
  Status status_;
  std::string_view data_;   // all bytes after the header
  size_t data_offset_ = 0;  // the offset of `data_` in the file
  std::map<std::string, std::string, std::less<>> metadata_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_SAFETENSORS_H_
