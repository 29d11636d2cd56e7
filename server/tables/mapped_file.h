// A file mapped read-only. Its pages belong to the page cache: all mappings of the file share them,
// even across processes, and they use no anonymous memory.
#ifndef COLCAST_SERVER_TABLES_MAPPED_FILE_H_
#define COLCAST_SERVER_TABLES_MAPPED_FILE_H_

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/file.h"
#include "server/base/status.h"

namespace colcast::tables {

// Keeps the process alive if it reads a mapped file that was truncated or that the disk can no
// longer read (SIGBUS). The signal handler replaces the page with zeros and sets a flag. The reader
// continues, and its caller discards the data.
//
// While a guard exists, a SIGBUS within its range sets `*failed`. Any other SIGBUS goes to the
// previous handler.
class BusErrorGuard {
 public:
  // `failed` must outlive the guard. While kMost guards exist, a new guard has no effect.
  static constexpr size_t kMost = 4096;
  BusErrorGuard(const void* begin, size_t size, std::atomic<bool>* failed);
  ~BusErrorGuard();
  BusErrorGuard(const BusErrorGuard&) = delete;
  BusErrorGuard& operator=(const BusErrorGuard&) = delete;

  bool guards() const { return slot_ < kMost; }

 private:
  size_t slot_ = 0;
};

// All methods may be called from any thread.
class MappedFile {
 public:
  // Returns File::Open()'s errors, DATA_LOSS if empty, RESOURCE_EXHAUSTED if it cannot be mapped.
  static Status Open(const std::string& path, std::shared_ptr<const MappedFile>* opened);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Reading the bytes never ends the process. Data may be used only if Check() is OK afterwards.
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  const std::string& path() const { return file_.path(); }

  // Returns DATA_LOSS permanently once the file's size has changed, the disk could not read a page,
  // or SetFailed() was called; also from a change of the modification time until Accept().
  // Renaming another file over this one, or deleting it, does not affect the mapping.
  Status Check() const;

  // Call if the bytes turn out to be wrong.
  void SetFailed() const { failed_ = true; }
  bool has_failed() const { return failed_; }

  // When the file's metadata last changed, in ns, as the last Check() saw it. The bytes may be
  // unchanged, or a writer may have changed them and reset the modification time.
  int64_t changed() const { return changed_; }
  // Call if all bytes that a model uses were found correct after the change `changed`. Does nothing
  // if the file has changed since, or while several models use it: each knows only its own tables.
  void Accept(int64_t changed) const;
  void AddModel() const { ++models_; }
  void RemoveModel() const { --models_; }

  // The number of bytes of a range that are in memory.
  int64_t Resident(size_t offset, size_t size) const;

  // Removes a range from this process's resident memory, because it will not be needed soon. The
  // pages stay in the page cache.
  void Leave(size_t offset, size_t size) const;

  // Turns off read-ahead, for a file that does not fit in memory.
  void ReadSparingly() const;
  bool reads_sparingly() const { return sparing_; }
  // Copies a range, and evicts its pages from the page cache unless a process has mapped them.
  // Returns false if the range cannot be read.
  bool CopyAndEvict(size_t offset, size_t size, char* copy) const;

 private:
  MappedFile(File file, const struct stat& opened, void* data);

  const File file_;
  const struct stat opened_;
  void* const data_;
  const size_t size_;
  mutable std::atomic<bool> failed_{false};
  mutable std::atomic<int64_t> written_;  // the accepted modification time
  mutable std::atomic<int64_t> changed_;
  mutable std::atomic<int> models_{0};
  mutable std::atomic<bool> sparing_{false};
  const BusErrorGuard guard_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_MAPPED_FILE_H_
