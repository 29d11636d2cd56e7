// Finds metadata and tensors in a file by name and checks their contents. Errors are DATA_LOSS and
// name the entry and, where possible, the offset in the file.
#ifndef COLCAST_SERVER_TABLES_CHECKED_TENSORS_H_
#define COLCAST_SERVER_TABLES_CHECKED_TENSORS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/tables/safetensors.h"
#include "server/wire/data_type.h"

namespace colcast::tables {

// XXH3-64.
uint64_t HashOf(std::string_view bytes);

// The same as text: 16 hex digits.
std::string ChecksumOf(std::string_view data);

// Finds an entry of the metadata.
Status FindText(const Safetensors& read, const char* name, std::string* text);
Status FindNumber(const Safetensors& read, const char* name, int64_t* number);  // at least 0
Status ExpectText(const Safetensors& read, const char* name, const std::string& expected);

Status CheckData(const Safetensors& read, const std::string& checksum);

Status FindTensor(const Safetensors& read, const std::string& name, const char* dtype,
                  const std::vector<int64_t>& shape, const StoredTensor** tensor);

// Finds a one-dimensional tensor of any length.
Status FindList(const Safetensors& read, const std::string& name, const char* dtype,
                const StoredTensor** tensor);

// Checks that the numbers, int64 or uint32, begin with 0, never decrease and end with `last`.
template <typename T>
Status CheckRising(const std::string& name, const StoredTensor& tensor, int64_t last);

Status CheckBools(const std::string& name, const StoredTensor& bools);

// The name of a numeric dtype in files; empty if files cannot have it.
const char* StoredDtypeOf(DataType dtype);

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_CHECKED_TENSORS_H_
