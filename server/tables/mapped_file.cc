#include "server/tables/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace colcast::tables {
namespace {

int64_t Nanoseconds(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The pages entirely within a range, or all pages that overlap it.
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

// Read by the signal handler, which must not take a lock. `size` is written last and cleared first.
struct Range {
  std::atomic<uintptr_t> begin{0};
  std::atomic<size_t> size{0};  // 0 if unused
  std::atomic<std::atomic<bool>*> failed{nullptr};
};

Range ranges[BusErrorGuard::kMost];
std::mutex ranges_mutex;  // guards writes
struct sigaction previous;

bool Replace(uintptr_t address) {
  for (Range& range : ranges) {
    const size_t size = range.size.load(std::memory_order_acquire);
    if (address - range.begin.load(std::memory_order_relaxed) >= size) continue;
    const uintptr_t page = address & ~(static_cast<uintptr_t>(getpagesize()) - 1);
    range.failed.load(std::memory_order_relaxed)->store(true);
    return mmap(reinterpret_cast<void*>(page), getpagesize(), PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_ours = Replace(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = error;
  if (is_ours) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    sigaction(SIGBUS, &previous, nullptr);
    raise(signal);  // ends the process after this handler returns
  }
}

void Install() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous);
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

BusErrorGuard::BusErrorGuard(const void* begin, size_t size, std::atomic<bool>* failed) {
  static std::once_flag installed;
  std::call_once(installed, Install);
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  while (slot_ < kMost && ranges[slot_].size.load(std::memory_order_relaxed) != 0) ++slot_;
  if (slot_ == kMost) return;
  ranges[slot_].begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_relaxed);
  ranges[slot_].failed.store(failed, std::memory_order_relaxed);
  ranges[slot_].size.store(size, std::memory_order_release);
}

BusErrorGuard::~BusErrorGuard() {
  if (slot_ < kMost) ranges[slot_].size.store(0, std::memory_order_release);
}

}  // namespace colcast::tables
