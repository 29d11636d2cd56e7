// A file mapped into memory to be read.
#ifndef COLCAST_SERVER_ITEMS_MAPPED_FILE_H_
#define COLCAST_SERVER_ITEMS_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/status.h"

namespace colcast::items {

class MappedFile {
 public:
  // NOT_FOUND if it cannot be opened, DATA_LOSS for what cannot be mapped, such as an empty file.
  static Status Open(const std::string& path, std::shared_ptr<const MappedFile>* file);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}

  void* const data_;
  const size_t size_;
};

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_MAPPED_FILE_H_
