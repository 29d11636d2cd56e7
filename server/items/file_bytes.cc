#include "server/items/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace colcast::items {
namespace {

Status ReadOpened(int file, size_t size, char* data) {
  for (size_t done = 0; done < size;) {
    const ssize_t bytes = read(file, data + done, size - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Error(StatusCode::kDataLoss, std::strerror(errno));
    if (bytes == 0) return Error(StatusCode::kDataLoss, "it was cut short while it was read");
    done += static_cast<size_t>(bytes);
  }
  return OkStatus();
}

}  // namespace

Status FileBytes::Read(const std::string& path, std::shared_ptr<const FileBytes>* read) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (file < 0 || fstat(file, &info) != 0) {
    const int error = errno;
    if (file >= 0) close(file);
    return Error(StatusCode::kNotFound, std::strerror(error));
  }
  const auto size = static_cast<size_t>(info.st_size);
  Status status;
  if (!S_ISREG(info.st_mode) || size == 0) {
    status = Error(StatusCode::kDataLoss, "it is an empty file, or none");
  } else {
    void* const data =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      status = Error(StatusCode::kResourceExhausted, "no memory for its ", size, " bytes");
    } else {
      madvise(data, size, MADV_HUGEPAGE);  // a wish
      std::shared_ptr<const FileBytes> made(new FileBytes(data, size));
      status = ReadOpened(file, size, static_cast<char*>(data));
      if (status.ok()) *read = std::move(made);
    }
  }
  close(file);
  return status;
}

FileBytes::~FileBytes() { munmap(data_, size_); }

}  // namespace colcast::items
