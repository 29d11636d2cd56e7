// libFuzzer target: whatever an index contains, a tensor is mapped within its file or not at all.
//
// If the first byte is odd, the bytes after the second are the index. If it is even, the second
// byte is the size of the header that follows; the header, and the remaining bytes as an entry, go
// into an index whose blocks have correct checksums.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine/mapping/mapped_tables.h"
#include "tensorflow/core/platform/env.h"
#include "xla/tsl/lib/io/table_builder.h"

namespace {

using colcast::engine::MappedTables;

constexpr size_t kDataBytes = 4096;

void Check(bool condition) {
  if (!condition) std::abort();
}

// The files are in memory if the system has /dev/shm.
const std::string& Prefix() {
  static const auto* const prefix = [] {
    const std::string folder = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    auto* const made = new std::string(folder + "/index_fuzz_" + std::to_string(getpid()));
    std::ofstream(*made + ".data-00000-of-00001") << std::string(kDataBytes, 'x');
    std::atexit([] {
      std::filesystem::remove(Prefix() + ".data-00000-of-00001");
      std::filesystem::remove(Prefix() + ".index");
    });
    return made;
  }();
  return *prefix;
}

void WriteIndex(std::string_view header, std::string_view entry) {
  std::unique_ptr<tensorflow::WritableFile> file;
  Check(tensorflow::Env::Default()->NewWritableFile(Prefix() + ".index", &file).ok());
  tsl::table::Options options;
  options.compression = tsl::table::kNoCompression;
  tsl::table::TableBuilder table(options, file.get());
  table.Add("", header);
  table.Add("table", entry);
  Check(table.Finish().ok() && file->Close().ok());
}

void MapAll() {
  tensorflow::BundleReader checkpoint(tensorflow::Env::Default(), Prefix());
  if (!checkpoint.status().ok()) return;
  std::vector<std::string> names = {"table"};
  for (checkpoint.Seek(""); checkpoint.Valid() && names.size() < 100; checkpoint.Next()) {
    names.emplace_back(checkpoint.key());
  }
  const tensorflow::core::RefCountPtr<MappedTables> tables(new MappedTables);
  for (const std::string& name : names) {
    tensorflow::Tensor tensor;
    const auto mapped = tables->Map(&checkpoint, Prefix(), name, "", 1, &tensor);
    if (!mapped.ok() || !*mapped) continue;
    const auto table = tables->Find(tensor);
    Check(table != nullptr && table->size > 0 && table->offset <= kDataBytes);
    Check(table->size <= kDataBytes - table->offset);
    Check(tensor.NumElements() > 0 && tensor.NumElements() <= static_cast<int64_t>(kDataBytes));
    Check(tensor.TotalBytes() == table->size);
    CheckBytes(*table, colcast::StopFlag()).IgnoreError();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) { return 0; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[0] % 2 == 1) {
    std::ofstream(Prefix() + ".index", std::ios::binary) << rest;
  } else {
    const size_t header = std::min<size_t>(data[1], rest.size());
    WriteIndex(rest.substr(0, header), rest.substr(header));
  }
  try {
    MapAll();
  } catch (const std::bad_alloc&) {  // huge sizes in an index; ColcastRestore handles them too
  }
  return 0;
}
