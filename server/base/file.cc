#include "server/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace colcast {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

FileIdentity IdentityFrom(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size,
          info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec};
}

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return StatusCode::kResourceExhausted;
    case ENXIO:  // the path is a socket
      return StatusCode::kFailedPrecondition;
    default:
      return StatusCode::kDataLoss;
  }
}

// Reads up to `size` bytes. Returns -1 and sets errno on failure.
ssize_t ReadSome(int file, size_t offset, size_t size, char* data) {
  for (;;) {
    const ssize_t bytes = pread(file, data, size, static_cast<off_t>(offset));
    if (bytes >= 0 || errno != EINTR) return bytes;
  }
}

}  // namespace

FileIdentity IdentityOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? IdentityFrom(info) : FileIdentity{};
}

Status File::Open(const std::string& path, File* file) {
  File opened;
  opened.path_ = path;
  opened.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (opened.descriptor_ < 0 || fstat(opened.descriptor_, &info) != 0) return opened.Failed(errno);
  if (!S_ISREG(info.st_mode)) {
    return FailedPrecondition("cannot read ", path, ": it is not a regular file");
  }
  opened.identity_ = IdentityFrom(info);
  *file = std::move(opened);
  return OkStatus();
}

File& File::operator=(File&& other) noexcept {
  path_.swap(other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(identity_, other.identity_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status File::ReadAt(size_t offset, size_t size, char* data) const {
  for (size_t done = 0; done < size;) {
    const ssize_t bytes = ReadSome(descriptor_, offset + done, size - done, data + done);
    if (bytes < 0) return Failed(errno);
    if (bytes == 0) {
      return Error(StatusCode::kDataLoss, "cannot read ", path_, ": it ends at byte ",
                   offset + done);
    }
    done += static_cast<size_t>(bytes);
  }
  return OkStatus();
}

Status File::ReadAll(size_t most, std::string* content) const {
  constexpr size_t kLeastRead = 4096;  // files in /proc claim to be empty
  content->clear();
  for (;;) {
    const size_t done = content->size();
    if (done > most) {
      return FailedPrecondition("cannot read ", path_, ": it has more than ", most, " bytes");
    }
    content->resize(std::min(std::max(size() + 1, done + kLeastRead), most + 1));
    const ssize_t bytes =
        ReadSome(descriptor_, done, content->size() - done, content->data() + done);
    content->resize(done + static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    if (bytes < 0) return Failed(errno);
    if (bytes == 0) return OkStatus();
  }
}

Status File::Failed(int error) const {
  return Error(CodeOf(error), "cannot read ", path_, ": ", std::strerror(error));
}

Status ReadFile(const std::string& path, std::string* content, size_t most) {
  File file;
  const Status status = File::Open(path, &file);
  return status.ok() ? file.ReadAll(most, content) : status;
}

}  // namespace colcast
