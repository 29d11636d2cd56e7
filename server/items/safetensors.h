// The safetensors container: a length, a header in JSON, and tensors one after the other. Nothing
// is believed: what comes back lies within the bytes, is aligned, and overlaps nothing.
#ifndef COLCAST_SERVER_ITEMS_SAFETENSORS_H_
#define COLCAST_SERVER_ITEMS_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/wire/span.h"

namespace colcast::items {

// The error for a malformed file.
template <typename... Parts>
Status Wrong(const Parts&... parts) {
  return Error(StatusCode::kDataLoss, parts...);
}

struct StoredTensor {
  std::string dtype;           // "I64", "F32", "BOOL" and so on
  std::vector<int64_t> shape;  // none is negative
  const uint8_t* data = nullptr;
  size_t bytes = 0;   // of the shape
  size_t offset = 0;  // in the file

  // REQUIRES the dtype that T is.
  template <typename T>
  Span<T> values() const {
    return {reinterpret_cast<const T*>(data), bytes / sizeof(T)};
  }
};

struct Safetensors {
  std::map<std::string, std::string, std::less<>> metadata;
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::string_view data;   // all bytes after the header
  size_t data_offset = 0;  // in the file
};

// Reads what lies in `bytes`, which starts at an address aligned to 8 and must outlive the result.
// DATA_LOSS, with the offset in the file and the tensor, for what is malformed.
Status ReadSafetensors(std::string_view bytes, Safetensors* read);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_SAFETENSORS_H_
