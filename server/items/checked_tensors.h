// Finds tensors in a file by name and checks their contents. Errors are DATA_LOSS and name the
// tensor and, where possible, the offset in the file.
#ifndef COLCAST_SERVER_ITEMS_CHECKED_TENSORS_H_
#define COLCAST_SERVER_ITEMS_CHECKED_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/items/safetensors.h"
#include "server/wire/data_type.h"

namespace colcast::items {

// Finds a tensor with this dtype and shape.
Status FindTensor(const Safetensors& read, const std::string& name, const char* dtype,
                  const std::vector<int64_t>& shape, const StoredTensor** tensor);

// Finds a one-dimensional tensor of any length.
Status FindList(const Safetensors& read, const std::string& name, const char* dtype,
                const StoredTensor** tensor);

// Checks that the numbers, int64 or uint32, begin with 0, never decrease and end with `last`.
template <typename T>
Status CheckRising(const std::string& name, const StoredTensor& tensor, int64_t last);

// Checks that each byte is 0 or 1.
Status CheckBools(const std::string& name, const StoredTensor& bools);

// The name of a numeric feature's dtype in files.
const char* StoredDtypeOf(DataType dtype);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_CHECKED_TENSORS_H_
