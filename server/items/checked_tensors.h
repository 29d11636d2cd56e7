// Tensors of a file by name, and whether they hold what they should. What is wrong is DATA_LOSS and
// names the tensor, and where it can the offset in the file.
#ifndef COLCAST_SERVER_ITEMS_CHECKED_TENSORS_H_
#define COLCAST_SERVER_ITEMS_CHECKED_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/items/safetensors.h"
#include "server/wire/data_type.h"

namespace colcast::items {

// Finds a tensor of this dtype and shape.
Status FindTensor(const Safetensors& read, const std::string& name, const char* dtype,
                  const std::vector<int64_t>& shape, const StoredTensor** tensor);

// Of one dimension, however long.
Status FindList(const Safetensors& read, const std::string& name, const char* dtype,
                const StoredTensor** tensor);

// Whether its numbers, int64 or uint32, begin with 0, never fall and end with `last`.
template <typename T>
Status CheckRising(const std::string& name, const StoredTensor& tensor, int64_t last);

// Whether each byte is 0 or 1.
Status CheckBools(const std::string& name, const StoredTensor& bools);

// What a file calls the dtype of a feature's numbers.
const char* StoredDtypeOf(DataType dtype);

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_CHECKED_TENSORS_H_
