#include "server/base/allocator_state.h"

#include <unistd.h>

#include <cstddef>

// Defined by jemalloc; null in tests, which use another allocator.
extern "C" {
int mallctl(const char* name, void* old, size_t* old_size, void* now, size_t now_size)
    __attribute__((weak));
int mallctlnametomib(const char* name, size_t* mib, size_t* length) __attribute__((weak));
int mallctlbymib(const size_t* mib, size_t length, void* old, size_t* old_size, void* now,
                 size_t now_size) __attribute__((weak));
}

namespace colcast {
namespace {

// A jemalloc control whose name is looked up once.
struct Control {
  explicit Control(const char* name) {
    if (mallctlnametomib != nullptr && mallctlnametomib(name, mib, &length) != 0) length = 0;
  }

  size_t mib[3] = {};
  size_t length = mallctlnametomib == nullptr ? 0 : 3;
};

template <typename Number>
Number ReadNumber(const char* name) {
  Number number = 0;
  size_t size = sizeof(number);
  return mallctl(name, &number, &size, nullptr, 0) == 0 ? number : 0;
}

}  // namespace

AllocationPeak::AllocationPeak() {
  static const Control reset("thread.peak.reset");
  if (reset.length > 0) mallctlbymib(reset.mib, reset.length, nullptr, nullptr, nullptr, 0);
}

int64_t AllocationPeak::bytes() const {
  static const Control read("thread.peak.read");
  if (read.length == 0) return 0;
  uint64_t peak = 0;
  size_t size = sizeof(peak);
  const int error = mallctlbymib(read.mib, read.length, &peak, &size, nullptr, 0);
  return error == 0 ? static_cast<int64_t>(peak) : 0;
}

int64_t ReusableAddressSpace() {
  if (mallctl == nullptr) return 0;
  uint64_t epoch = 1;  // refreshes the statistics
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
  // 4096 is MALLCTL_ARENAS_ALL.
  const size_t pages = ReadNumber<size_t>("stats.arenas.4096.pdirty") +
                       ReadNumber<size_t>("stats.arenas.4096.pmuzzy");
  return static_cast<int64_t>(ReadNumber<size_t>("stats.retained") + pages * sysconf(_SC_PAGESIZE));
}

}  // namespace colcast
