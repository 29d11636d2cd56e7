// Opens the files that the server reads. A path may name a FIFO, a device or a directory, and its
// file may grow or be replaced meanwhile: nothing here waits for a writer or reads without a limit.
#ifndef COLCAST_SERVER_BASE_FILE_H_
#define COLCAST_SERVER_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "server/base/status.h"

namespace colcast {

// Differs between two contents of a path.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t file = 0;  // 0: there is none
  int64_t bytes = 0;
  int64_t changed = 0;  // in ns

  bool operator==(const FileIdentity& other) const {
    return device == other.device && file == other.file && bytes == other.bytes &&
           changed == other.changed;
  }
  bool operator!=(const FileIdentity& other) const { return !(*this == other); }
};
FileIdentity IdentityOf(const std::string& path);

// A regular file, open for reading. Messages name the path.
class File {
 public:
  // NOT_FOUND if there is none, PERMISSION_DENIED, RESOURCE_EXHAUSTED without descriptors,
  // FAILED_PRECONDITION if it is no regular file, else DATA_LOSS.
  static Status Open(const std::string& path, File* file);

  File() = default;
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  // When it was opened.
  const FileIdentity& identity() const { return identity_; }
  size_t size() const { return static_cast<size_t>(identity_.bytes); }

  // Fills all `size` bytes. DATA_LOSS if there are fewer, or the disk fails.
  Status ReadAt(size_t offset, size_t size, char* data) const;

  // FAILED_PRECONDITION if there are more than `most` bytes, however large it was when opened.
  Status ReadAll(size_t most, std::string* content) const;

 private:
  Status Failed(int error) const;

  std::string path_;
  int descriptor_ = -1;
  FileIdentity identity_;
};

// Of files that people write: configuration, certificates, records.
inline constexpr size_t kMostTextBytes = 64 << 20;

Status ReadFile(const std::string& path, std::string* content, size_t most = kMostTextBytes);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_FILE_H_
