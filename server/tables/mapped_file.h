// A file in the address space, to be read only. Pages are the page cache's: shared by all that map
// the file, other processes included, and no anonymous memory.
#ifndef COLCAST_SERVER_TABLES_MAPPED_FILE_H_
#define COLCAST_SERVER_TABLES_MAPPED_FILE_H_

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/file.h"
#include "server/base/status.h"
#include "server/tables/bus_errors.h"

namespace colcast::tables {

// All methods may be called from any thread.
class MappedFile {
 public:
  // Errors are File::Open's; DATA_LOSS for a file without bytes.
  static Status Open(const std::string& path, std::shared_ptr<const MappedFile>* opened);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Reading it never ends the process. What was read may be used if Check() is OK afterwards.
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  const std::string& path() const { return file_.path(); }

  // DATA_LOSS, for good, once the file has been written to or cut short, or the disk has not given
  // a page; FailedBytes() was called. A file that is replaced by another one under its name, or
  // deleted, stays as it was for who has it open.
  Status Check() const;

  // Its bytes turned out not to be what they should.
  void SetFailed() const { failed_ = true; }

  // How often its owner, links or times were changed: by itself that says nothing about its bytes,
  // but who writes a file in place may set its time of modification back.
  int64_t touched() const { return touched_; }

  // Reads it all into memory, for good. RESOURCE_EXHAUSTED where the system does not allow it.
  Status Lock() const;
  bool locked() const { return locked_; }

  // How many bytes of a range are in memory.
  int64_t Resident(size_t offset, size_t size) const;

  // Bytes of a range are not needed soon: they stay in the page cache and leave this process.
  void Leave(size_t offset, size_t size) const;

 private:
  MappedFile(File file, const struct stat& opened, void* data);

  const File file_;
  const struct stat opened_;
  void* const data_;
  const size_t size_;
  mutable std::atomic<bool> failed_{false};
  mutable std::atomic<int64_t> changed_nanoseconds_;
  mutable std::atomic<int64_t> touched_{0};
  mutable std::atomic<bool> locked_{false};
  const BusErrorGuard guard_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_MAPPED_FILE_H_
