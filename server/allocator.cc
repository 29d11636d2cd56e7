// Configures jemalloc, the process's allocator. The environment variable MALLOC_CONF overrides
// these settings.
//
// Blocks of 32 MiB and more, mostly embedding tables, have their own arena (oversize_threshold). We
// change two of its defaults:
//
// It uses huge pages where Linux provides them on request (transparent_hugepage = madvise). A
// request reads rows all over the tables, and with small pages every row misses the TLB: with
// 3.3 GB of tables, huge pages saved 5 to 14 % of the CPU time per request. The other arenas are
// fragmented; huge pages there would add 80 MB to every process, which would then keep growing.
//
// It keeps freed memory for ten seconds, like the other arenas. By default, jemalloc returns large
// blocks immediately, so a graph with tensors of this size has page faults in every request. With
// the default threshold of 8 MiB, page faults took two thirds of DIN's time at 500 candidates.
//
// background_thread returns memory that was unused for ten seconds. Without it, a freed model would
// stay in memory until a request happens to use its arena.

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "oversize_threshold:33554432,background_thread:true";
}

namespace {

extent_hooks_t default_hooks;
extent_hooks_t hooks;

void* MapHugePages(extent_hooks_t* /*hooks*/, void* address, size_t size, size_t alignment,
                   bool* zero, bool* commit, unsigned arena) {
  void* const mapped =
      default_hooks.alloc(&default_hooks, address, size, alignment, zero, commit, arena);
  if (mapped != nullptr) madvise(mapped, size, MADV_HUGEPAGE);
  return mapped;
}

template <typename T>
bool Read(const std::string& name, T* value) {
  size_t size = sizeof(T);
  return mallctl(name.c_str(), value, &size, nullptr, 0) == 0;
}

template <typename T>
void Write(const std::string& name, T value) {
  mallctl(name.c_str(), nullptr, nullptr, &value, sizeof(T));
}

// Finds the arena of large blocks by allocating one, because the first such block creates the
// arena. Returns false if MALLOC_CONF has disabled it.
bool FindArenaOfLargeBlocks(unsigned* arena) {
  size_t threshold = 0;
  if (!Read("opt.oversize_threshold", &threshold) || threshold == 0) return false;
  void* block = mallocx(threshold, MALLOCX_TCACHE_NONE);
  if (block == nullptr) return false;
  size_t size = sizeof(*arena);
  const int error = mallctl("arenas.lookup", arena, &size, &block, sizeof(block));
  dallocx(block, MALLOCX_TCACHE_NONE);
  return error == 0;
}

__attribute__((constructor)) void SetUpArenaOfLargeBlocks() {
  unsigned index = 0;
  if (!FindArenaOfLargeBlocks(&index)) return;
  const std::string arena = "arena." + std::to_string(index);
  if (ssize_t milliseconds = 0; Read("arenas.dirty_decay_ms", &milliseconds)) {
    Write(arena + ".dirty_decay_ms", milliseconds);
    Write(arena + ".oversize_threshold", std::numeric_limits<size_t>::max());
  }
  const char* huge_pages = nullptr;
  if (!Read("opt.thp", &huge_pages) || std::strcmp(huge_pages, "default") != 0) return;
  extent_hooks_t* present = nullptr;
  if (!Read(arena + ".extent_hooks", &present)) return;
  default_hooks = *present;
  hooks = default_hooks;
  hooks.alloc = MapHugePages;
  Write(arena + ".extent_hooks", &hooks);
}

}  // namespace
