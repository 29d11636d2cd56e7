#include "server/tables/polled_files.h"

#include <sys/mman.h>

#include <cstdio>
#include <memory>

#include "server/base/machine.h"
#include "server/wire/data_type.h"

namespace colcast::tables {
namespace {

// The memory that must remain free after a file is loaded, as a fraction of the file's size.
constexpr double kMemoryMargin = 0.2;

Status CheckMemory(const std::string& path, int64_t bytes) {
  const auto needed = static_cast<int64_t>(static_cast<double>(bytes) * (1 + kMemoryMargin));
  const int64_t available = AvailableMemory();
  if (needed <= available) return OkStatus();
  return ResourceExhausted(path, ": it needs ", needed >> 20, " MiB of memory, ", available >> 20,
                           " MiB are left");
}

// Reads a file into page-aligned memory, in huge pages where available: lookups are spread over the
// whole file, so with small pages most of their time would be spent on TLB misses.
Status ReadBytes(const std::string& path, std::shared_ptr<const void>* owner,
                 std::string_view* bytes) {
  File file;
  if (Status status = File::Open(path, &file); !status.ok()) return status;
  const size_t size = file.size();
  if (size == 0) return Error(StatusCode::kDataLoss, path, ": the file is empty");
  void* const data =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return ResourceExhausted(path, ": no memory for its ", size, " bytes");
  owner->reset(data, [size](void* mapped) { munmap(mapped, size); });
  madvise(data, size, MADV_HUGEPAGE);  // only a hint
  *bytes = {static_cast<const char*>(data), size};
  return file.ReadAt(0, size, static_cast<char*>(data));
}

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
  if (Status status = CheckMemory(path, id.bytes); !status.ok()) return status;
  std::shared_ptr<const void> owner;
  std::string_view bytes;
  Status status = ReadBytes(path, &owner, &bytes);
  if (status.ok()) {
    Safetensors file(bytes, std::move(owner), format_);
    status = file.ok() ? use(&file) : file.status();
    if (!status.ok()) status.message = path + ": " + status.message;
  }
  if (!status.ok()) refused_[path] = {id, status};
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

}  // namespace colcast::tables
