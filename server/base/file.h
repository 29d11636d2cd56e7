// Reads files safely: a path may name a FIFO, a device or a directory, and a file may grow or be
// replaced while it is read, so nothing here waits for a writer or reads without a limit.
#ifndef COLCAST_SERVER_BASE_FILE_H_
#define COLCAST_SERVER_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "server/base/status.h"

namespace colcast {

// Identifies a file's contents: it changes when the contents do.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t file = 0;  // 0 if there is no file
  int64_t bytes = 0;
  int64_t changed = 0;  // time of the last change, in ns

  bool operator==(const FileIdentity& other) const {
    return device == other.device && file == other.file && bytes == other.bytes &&
           changed == other.changed;
  }
  bool operator!=(const FileIdentity& other) const { return !(*this == other); }
};
FileIdentity IdentityOf(const std::string& path);

// A regular file, open for reading. Error messages name the path.
class File {
 public:
  // Returns NOT_FOUND; PERMISSION_DENIED; RESOURCE_EXHAUSTED if descriptors run out;
  // FAILED_PRECONDITION if it is not a regular file; DATA_LOSS for any other failure.
  static Status Open(const std::string& path, File* file);

  File() = default;
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  // The file's identity at the time of Open().
  const FileIdentity& identity() const { return identity_; }
  size_t size() const { return static_cast<size_t>(identity_.bytes); }

  // Reads exactly `size` bytes. Returns DATA_LOSS if there are fewer or the disk fails.
  Status ReadAt(size_t offset, size_t size, char* data) const;

  // Returns FAILED_PRECONDITION if the file has more than `most` bytes, even if it grew beyond them
  // only after Open().
  Status ReadAll(size_t most, std::string* content) const;

 private:
  Status Failed(int error) const;

  std::string path_;
  int descriptor_ = -1;
  FileIdentity identity_;
};

// The size limit for files written by people: configuration, certificates, records.
inline constexpr size_t kMostTextBytes = 64 << 20;

Status ReadFile(const std::string& path, std::string* content, size_t most = kMostTextBytes);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_FILE_H_
