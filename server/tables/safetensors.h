// Reads the safetensors container: a length, a JSON header, and consecutive tensors. Trusts
// nothing: returned tensors lie within the bytes, are aligned, and do not overlap.
#ifndef COLCAST_SERVER_TABLES_SAFETENSORS_H_
#define COLCAST_SERVER_TABLES_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"

namespace colcast::tables {

// Makes the error for a malformed file.
template <typename... Parts>
Status Wrong(const Parts&... parts) {
  return Error(StatusCode::kDataLoss, parts...);
}

struct StoredTensor {
  std::string dtype;           // "I64", "F32", "BOOL" and so on
  std::vector<int64_t> shape;  // non-negative sizes
  const uint8_t* data = nullptr;
  size_t bytes = 0;   // determined by the shape
  size_t offset = 0;  // in the file

  // REQUIRES that dtype corresponds to T.
  template <typename T>
  Span<T> values() const {
    return {reinterpret_cast<const T*>(data), bytes / sizeof(T)};
  }
};

struct Safetensors {
  std::map<std::string, std::string, std::less<>> metadata;
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::string_view data;   // all bytes after the header
  size_t data_offset = 0;  // offset of the data in the file
};

// Reads the container in `bytes`, which must be aligned to 8 and outlive the result. DATA_LOSS,
// with the offset in the file and the tensor, if it is malformed.
Status ReadSafetensors(std::string_view bytes, Safetensors* read);

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_SAFETENSORS_H_
