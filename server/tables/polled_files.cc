#include "server/tables/polled_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/wire/data_type.h"

namespace colcast::tables {
namespace {

// The memory that must remain free after a file is loaded, as a fraction of the file's size.
constexpr double kMemoryMargin = 0.2;

Status CheckMemory(int64_t bytes) {
  const auto needed = static_cast<int64_t>(static_cast<double>(bytes) * (1 + kMemoryMargin));
  const int64_t available = AvailableMemory();
  if (needed <= available) return OkStatus();
  return ResourceExhausted("it needs ", needed >> 20, " MiB of memory, ", available >> 20,
                           " MiB are left");
}

// A file in page-aligned memory, in huge pages where available: lookups are spread over the whole
// file, so with small pages most of their time would be spent on TLB misses.
struct InMemory {
  File file;
  char* data = nullptr;
  std::shared_ptr<const void> owner;
  size_t header = 0;  // the bytes read by Begin()

  // Reads the file's header.
  Status Begin(const std::string& path) {
    if (Status status = File::Open(path, &file); !status.ok()) return status;
    const size_t size = file.size();
    if (size == 0) return Error(StatusCode::kDataLoss, "the file is empty");
    void* const mapped =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return ResourceExhausted("no memory for its ", size, " bytes");
    data = static_cast<char*>(mapped);
    owner.reset(mapped, [size](void* bytes) { munmap(bytes, size); });
    madvise(mapped, size, MADV_HUGEPAGE);  // only a hint
    const size_t length = std::min(size, Safetensors::kLengthBytes);
    Status status = file.ReadAt(0, length, data);
    if (!status.ok() || length == size) return status;
    header = Safetensors::HeaderBytes(bytes(), size);
    return file.ReadAt(length, header - length, data + length);
  }

  // Reads the rest.
  Status Load(const std::function<bool()>& stop) const {
    constexpr size_t kAtOnce = size_t{16} << 20;
    if (Status status = CheckMemory(static_cast<int64_t>(file.size())); !status.ok()) return status;
    for (size_t done = header; done < file.size(); done += kAtOnce) {
      if (stop()) return Error(StatusCode::kCancelled, "the server is shutting down");
      const size_t size = std::min(kAtOnce, file.size() - done);
      if (Status status = file.ReadAt(done, size, data + done); !status.ok()) return status;
    }
    return OkStatus();
  }

  std::string_view bytes() const { return {data, file.size()}; }
};

}  // namespace

std::string DeltaName(int64_t sequence) {
  char name[48];
  std::snprintf(name, sizeof(name), "delta-%06lld.safetensors", static_cast<long long>(sequence));
  return name;
}

int64_t DeltasIn(const std::string& folder) {
  int64_t count = 0;
  while (IdentityOf(folder + "/" + DeltaName(count + 1)) != FileIdentity{}) ++count;
  return count;
}

Status CheckMadeFor(const std::string& checksum, const char* entry, Safetensors* delta) {
  const std::string found = delta->Text(entry);
  if (!delta->ok() || found == checksum) return delta->status();
  return FailedPrecondition("it was made for the ", entry, " ", Readable(found), ", expected ",
                            checksum);
}

Status PolledFiles::Use(const std::string& path, const FileIdentity& id, const UseFile& use) {
  const auto refused = refused_.find(path);
  if (refused != refused_.end()) {
    if (refused->second.first == id) return refused->second.second;
    refused_.erase(refused);
  }
  InMemory read;
  Status status = read.Begin(path);
  if (status.ok()) {
    Safetensors file(read.bytes(), read.owner, format_, [&] { return read.Load(stop_); });
    status = file.ok() ? use(&file) : file.status();
  }
  if (status.ok()) return status;
  if (status.message.rfind(path, 0) != 0) status.message = path + ": " + status.message;
  if (status.code != StatusCode::kResourceExhausted && status.code != StatusCode::kCancelled) {
    refused_[path] = {id, status};
  }
  return status;
}

Status PolledFiles::UseDeltas(const std::string& folder, int64_t applied, const UseFile& use) {
  for (;;) {
    const std::string path = folder + "/" + DeltaName(++applied);
    const FileIdentity id = IdentityOf(path);
    if (id == FileIdentity{}) return OkStatus();
    const auto use_in_order = [&](Safetensors* file) {
      const int64_t sequence = file->Number("sequence");
      if (!file->ok()) return file->status();
      return sequence == applied
                 ? use(file)
                 : FailedPrecondition("it is delta ", sequence, ", expected ", applied);
    };
    if (Status status = Use(path, id, use_in_order); !status.ok()) return status;
  }
}

std::shared_ptr<PollThread> PollThread::Shared() {
  static std::mutex mutex;
  static std::weak_ptr<PollThread> shared;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<PollThread> found = shared.lock();
  if (found == nullptr) shared = found = std::make_shared<PollThread>();
  return found;
}

PollThread::~PollThread() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

Status PollThread::Add(std::chrono::milliseconds wait, std::function<void()> poll, Job* job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!thread_.joinable()) {
    Status status = StartThread(
        "polling of tables", [this] { Run(); }, &thread_);
    if (!status.ok()) return status;
  }
  polled_.push_back({wait, std::move(poll), Clock::now() + wait});
  *job = Job(&polled_.back(), [this](void* polled) { Remove(static_cast<Polled*>(polled)); });
  changed_.notify_all();
  return OkStatus();
}

void PollThread::PollNow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Polled& one : polled_) one.next = Clock::now();
  changed_.notify_all();
}

void PollThread::Run() {
  LowerThisThreadsPriority();
  std::unique_lock<std::mutex> lock(mutex_);
  running_ = nullptr;  // an exception in a polled function restarts Run()
  while (!stop_) {
    const auto first =
        std::min_element(polled_.begin(), polled_.end(),
                         [](const Polled& a, const Polled& b) { return a.next < b.next; });
    changed_.notify_all();
    if (first == polled_.end()) {
      changed_.wait(lock);
    } else if (first->next > Clock::now()) {
      const Clock::time_point next = first->next;  // `first` may be removed during the wait
      changed_.wait_until(lock, next);
    } else {
      first->next = Clock::now() + first->wait;
      running_ = &*first;
      lock.unlock();
      first->poll();
      lock.lock();
      running_ = nullptr;
    }
  }
}

void PollThread::Remove(const Polled* polled) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return running_ != polled; });
  polled_.remove_if([&](const Polled& one) { return &one == polled; });
}

}  // namespace colcast::tables
