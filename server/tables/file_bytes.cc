#include "server/tables/file_bytes.h"

#include <sys/mman.h>

#include "server/base/file.h"

namespace colcast::tables {

Status FileBytes::Read(const std::string& path, std::shared_ptr<const FileBytes>* read) {
  File file;
  if (Status status = File::Open(path, &file); !status.ok()) return status;
  const size_t size = file.size();
  if (size == 0) return Error(StatusCode::kDataLoss, path, ": the file is empty");
  void* const data =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return ResourceExhausted(path, ": no memory for its ", size, " bytes");
  madvise(data, size, MADV_HUGEPAGE);  // only a hint
  std::shared_ptr<const FileBytes> made(new FileBytes(data, size));
  Status status = file.ReadAt(0, size, static_cast<char*>(data));
  if (status.ok()) *read = std::move(made);
  return status;
}

FileBytes::~FileBytes() { munmap(data_, size_); }

}  // namespace colcast::tables
