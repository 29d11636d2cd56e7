#include "server/items/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace colcast::items {

Status MappedFile::Open(const std::string& path, std::shared_ptr<const MappedFile>* file) {
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (opened < 0 || fstat(opened, &info) != 0) {
    const int error = errno;
    if (opened >= 0) close(opened);
    return Error(StatusCode::kNotFound, std::strerror(error));
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* const data = S_ISREG(info.st_mode) && size > 0
                         ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened, 0)
                         : MAP_FAILED;
  close(opened);
  if (data == MAP_FAILED) {
    return Error(StatusCode::kDataLoss, "it cannot be mapped: is it an empty file?");
  }
  file->reset(new MappedFile(data, size));
  return OkStatus();
}

MappedFile::~MappedFile() { munmap(data_, size_); }

}  // namespace colcast::items
