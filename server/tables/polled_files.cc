#include "server/tables/polled_files.h"

#include <cstdio>

#include "server/base/machine.h"

namespace colcast::tables {
namespace {

// Memory that must remain free besides a file, as a share of its size.
constexpr double kMemoryMargin = 0.2;

Status CheckMemory(const std::string& path, int64_t bytes) {
  const auto needed = static_cast<int64_t>(static_cast<double>(bytes) * (1 + kMemoryMargin));
  const int64_t available = AvailableMemory();
  if (needed <= available) return OkStatus();
  return ResourceExhausted(path, ": it needs ", needed >> 20, " MiB of memory, ", available >> 20,
                           " MiB are left");
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

Status PolledFiles::Use(const std::string& path, const FileIdentity& id, const UseBytes& use) {
  const auto refused = refused_.find(path);
  if (refused != refused_.end()) {
    if (refused->second.first == id) return refused->second.second;
    refused_.erase(refused);
  }
  if (Status status = CheckMemory(path, id.bytes); !status.ok()) return status;
  std::shared_ptr<const FileBytes> bytes;
  Status status = FileBytes::Read(path, &bytes);
  if (status.ok()) {
    status = use(std::move(bytes));
    if (!status.ok()) status.message = path + ": " + status.message;
  }
  if (!status.ok()) refused_[path] = {id, status};
  return status;
}

Status PolledFiles::UseDeltas(const std::string& folder, int64_t applied, const UseBytes& use) {
  for (;;) {
    const std::string path = folder + "/" + DeltaName(++applied);
    const FileIdentity id = IdentityOf(path);
    if (id == FileIdentity{}) return OkStatus();
    if (Status status = Use(path, id, use); !status.ok()) return status;
  }
}

}  // namespace colcast::tables
