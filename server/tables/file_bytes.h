// A file's bytes in memory, in huge pages where available: lookups are spread over the file, and
// with small pages most of their time would go into TLB misses.
#ifndef COLCAST_SERVER_TABLES_FILE_BYTES_H_
#define COLCAST_SERVER_TABLES_FILE_BYTES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/status.h"

namespace colcast::tables {

class FileBytes {
 public:
  // Errors are those of File::Open() and ReadAt(), and RESOURCE_EXHAUSTED without memory.
  static Status Read(const std::string& path, std::shared_ptr<const FileBytes>* read);

  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  // Aligned to a page.
  std::string_view view() const { return {static_cast<const char*>(data_), size_}; }

 private:
  FileBytes(void* data, size_t size) : data_(data), size_(size) {}

  void* const data_;
  const size_t size_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_FILE_BYTES_H_
