#include "server/tables/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace colcast::tables {
namespace {

int64_t Nanoseconds(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The pages of a range: those entirely within it, or all that overlap it.
struct Pages {
  char* begin;
  size_t size;
};

Pages PagesCovering(void* data, size_t offset, size_t size) {
  const size_t page = getpagesize();
  const size_t first = offset / page * page;
  return {static_cast<char*>(data) + first, offset + size - first};
}

Pages PagesWithin(void* data, size_t offset, size_t size) {
  const size_t page = getpagesize();
  const size_t first = (offset + page - 1) / page * page;
  const size_t end = (offset + size) / page * page;
  return {static_cast<char*>(data) + first, end > first ? end - first : 0};
}

}  // namespace

Status MappedFile::Open(const std::string& path, std::shared_ptr<const MappedFile>* opened) {
  File file;
  if (Status status = File::Open(path, &file); !status.ok()) return status;
  struct stat info = {};
  if (fstat(file.descriptor(), &info) != 0 || info.st_size == 0) {
    return Error(StatusCode::kDataLoss, path, ": the file is empty");
  }
  void* const data = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED) {
    return ResourceExhausted(path, ": it cannot be mapped: ", std::strerror(errno));
  }
  opened->reset(new MappedFile(std::move(file), info, data));
  return (*opened)->guard_.guards()
             ? OkStatus()
             : ResourceExhausted(path, ": over ", BusErrorGuard::kMost, " files are mapped");
}

MappedFile::MappedFile(File file, const struct stat& opened, void* data)
    : file_(std::move(file)),
      opened_(opened),
      data_(data),
      size_(opened.st_size),
      written_(Nanoseconds(opened.st_mtim)),
      changed_(Nanoseconds(opened.st_ctim)),
      guard_(data, opened.st_size, &failed_) {}

MappedFile::~MappedFile() {
  // Unmaps in steps, because unmapping blocks threads that allocate memory.
  constexpr size_t kAtOnce = size_t{4} << 20;
  for (size_t done = 0; done < size_; done += kAtOnce) {
    munmap(static_cast<char*>(data_) + done, std::min(kAtOnce, size_ - done));
  }
}

Status MappedFile::Check() const {
  struct stat now = {};
  if (fstat(file_.descriptor(), &now) != 0 || now.st_size != opened_.st_size) failed_ = true;
  if (failed_) {
    return Error(StatusCode::kDataLoss, path(),
                 " was changed while it was served, or cannot be read: load the model's version "
                 "again; write versions under a temporary name, then rename them");
  }
  changed_ = Nanoseconds(now.st_ctim);
  if (Nanoseconds(now.st_mtim) == written_) return OkStatus();
  return Error(StatusCode::kDataLoss, path(),
               " was written to, or touched, while it was served: it is read again, and serves if "
               "its bytes are those saved");
}

void MappedFile::Accept(int64_t changed) const {
  if (models_ > 1) return;
  struct stat now = {};
  if (fstat(file_.descriptor(), &now) == 0 && Nanoseconds(now.st_ctim) == changed) {
    written_ = Nanoseconds(now.st_mtim);
  }
}

int64_t MappedFile::Resident(size_t offset, size_t size) const {
  constexpr size_t kAtOnce = size_t{1} << 30;
  const size_t page = getpagesize();
  int64_t resident = 0;
  for (size_t done = 0; done < size; done += kAtOnce) {
    const Pages pages = PagesCovering(data_, offset + done, std::min(kAtOnce, size - done));
    std::vector<unsigned char> in_memory((pages.size + page - 1) / page);
    if (mincore(pages.begin, pages.size, in_memory.data()) != 0) continue;
    resident += std::count_if(in_memory.begin(), in_memory.end(),
                              [](unsigned char one) { return (one & 1) != 0; });
  }
  return std::min<int64_t>(static_cast<int64_t>(size), resident * static_cast<int64_t>(page));
}

void MappedFile::Leave(size_t offset, size_t size) const {
  const Pages pages = PagesWithin(data_, offset, size);
  if (pages.size > 0) madvise(pages.begin, pages.size, MADV_DONTNEED);
}

void MappedFile::ReadSparingly() const {
  if (!sparing_.exchange(true)) madvise(data_, size_, MADV_RANDOM);
}

bool MappedFile::CopyAndEvict(size_t offset, size_t size, char* copy) const {
  const auto begin = static_cast<off_t>(offset);
  for (size_t done = 0; done < size;) {
    const ssize_t count =
        pread(file_.descriptor(), copy + done, size - done, begin + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  posix_fadvise(file_.descriptor(), begin, static_cast<off_t>(size), POSIX_FADV_DONTNEED);
  return true;
}

}  // namespace colcast::tables
