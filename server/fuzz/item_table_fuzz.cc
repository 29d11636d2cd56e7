// libFuzzer target: reads an item table file or refuses it. In a file that it reads, every row must
// be found and every value copied.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "server/items/item_columns.h"
#include "server/items/item_table.h"
#include "server/items/table_file.h"
#include "server/wire/column.h"

namespace {

using namespace colcast;  // NOLINT(google-build-using-namespace): a separate program
using items::ItemTable;
using items::TableFile;

void Check(bool condition) {
  if (!condition) std::abort();
}

// Corrects the file's checksum, if it has one: mutated files would never pass the check otherwise.
void MendChecksum(uint8_t* file, size_t size) {
  uint64_t length;
  if (size < sizeof(length)) return;
  std::memcpy(&length, file, sizeof(length));
  if (length > size - sizeof(length)) return;
  constexpr char kName[] = "\"checksum\":\"";
  constexpr size_t kDigits = 16;
  uint8_t* const end = file + sizeof(length) + length;
  uint8_t* const name = std::search(file, end, kName, kName + sizeof(kName) - 1);
  if (end - name < static_cast<int64_t>(sizeof(kName) - 1 + kDigits)) return;
  char digits[kDigits + 1];
  const auto data = static_cast<size_t>(file + size - end);
  std::snprintf(digits, sizeof(digits), "%016" PRIx64,
                items::HashOf({reinterpret_cast<const char*>(end), data}));
  std::memcpy(name + sizeof(kName) - 1, digits, kDigits);
}

class LengthSum final : public StringVisitor {
 public:
  void Set(int64_t, const Bytes& value) override {
    for (const char c : value.view()) sum_ += static_cast<uint8_t>(c);
  }

 private:
  volatile uint64_t sum_ = 0;
};

void ReadAll(const std::shared_ptr<const ItemTable>& table, const TableFile& file) {
  std::vector<uint32_t> numbers;
  table->Find(file.keys(), &numbers);
  for (size_t row = 0; row < numbers.size(); ++row) Check(numbers[row] == row + 1);
  constexpr size_t kMostRows = 64;
  numbers.resize(std::min(numbers.size(), kMostRows));
  numbers.push_back(ItemTable::kUnknown);
  std::vector<size_t> features(table->features().size());
  std::iota(features.begin(), features.end(), size_t{0});
  DecodedRequest request;
  items::AddColumns(table, numbers, features, &request);
  for (const Column& column : request.columns()) {
    int64_t elements = 0;
    // All lists are padded to the longest, so one long list can make a column too large to copy.
    constexpr int64_t kMostElements = 1 << 20;
    if (!ElementCount(column, &elements).ok() || elements > kMostElements) continue;
    if (column.dtype == DT_STRING) {
      LengthSum sum;
      Check(VisitStrings(column, elements, &sum).ok());
    } else {
      std::string values(elements * ElementSize(column.dtype), '\0');
      Check(CopyValues(column, elements, values.data()).ok());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto owned = std::make_shared<std::vector<uint64_t>>(size / sizeof(uint64_t) + 1);
  auto* const bytes = reinterpret_cast<uint8_t*>(owned->data());
  if (size > 0) std::memcpy(bytes, data, size);
  MendChecksum(bytes, size);
  tables::Safetensors read({reinterpret_cast<const char*>(bytes), size}, owned,
                           items::kItemsFormat);
  const bool is_delta = read.Text("kind") == "delta";
  std::shared_ptr<const TableFile> file;
  const Status status =
      TableFile::Read(is_delta ? TableFile::Kind::kDelta : TableFile::Kind::kTable, &read, &file);
  Check(status.ok() == status.message.empty());
  if (status.ok() && !is_delta) ReadAll(ItemTable::Create(file), *file);
  return 0;
}
