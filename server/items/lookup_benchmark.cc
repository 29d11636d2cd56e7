// Lookups of 500 random keys in a table and, for the same keys, in an LMDB database of the same
// rows: microseconds to find them, and to have all their values as columns.
//   lookup_benchmark TABLE.safetensors FOLDER   FOLDER, empty, gets the database
#include <lmdb.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "server/items/item_columns.h"
#include "server/items/item_table.h"
#include "server/tables/file_bytes.h"
#include "server/wire/tensor_values.h"

namespace {

using namespace colcast;  // NOLINT(google-build-using-namespace): a program of its own
using items::ItemTable;
using items::TableFile;
using Clock = std::chrono::steady_clock;

constexpr size_t kKeys = 500;
constexpr int kRounds = 200;

void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double MedianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Collects the strings of a column one after the other.
class Strings final : public StringVisitor {
 public:
  void Set(int64_t, const Bytes& value) override {
    bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
  }
  void Repeat(int64_t, int64_t) override {}

 private:
  std::string bytes_;
};

void ReadColumns(const DecodedRequest& request) {
  for (const Column& column : request) {
    int64_t count = 0;
    Check(ElementCount(column, &count).ok(), "a shape");
    if (column.dtype == DT_STRING) {
      Strings strings;
      Check(VisitStrings(column, count, &strings).ok(), "strings");
    } else {
      std::string values(count * ElementSize(column.dtype), '\0');
      Check(CopyValues(column, count, values.data()).ok(), "numbers");
    }
  }
}

// A row as one value: its numbers, and each string behind its length.
std::string BlobOf(const ItemTable& table, uint32_t number) {
  std::string blob;
  const auto [columns, row] = table.At(number);
  for (size_t i = 0; i < columns->size(); ++i) {
    const items::TableColumn& column = (*columns)[i];
    const size_t size = NumberSize(table.features()[i].feature.dtype);
    if (column.numbers != nullptr) {
      blob.append(reinterpret_cast<const char*>(column.numbers) + row * size, size);
      continue;
    }
    const auto length = static_cast<uint32_t>(column.texts[row].size());
    blob.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(column.texts[row]);
  }
  return blob;
}

class Database {
 public:
  Database(const char* folder, const ItemTable& table, const TableFile& file) {
    Check(mdb_env_create(&environment_) == 0, "mdb_env_create");
    mdb_env_set_mapsize(environment_, size_t{8} << 30);
    Check(mdb_env_open(environment_, folder, MDB_NOSYNC, 0644) == 0, "mdb_env_open");
    Fill(table, file);
  }
  ~Database() { mdb_env_close(environment_); }
  Database(const Database&) = delete;

  // The values of the keys, one after the other.
  std::vector<std::string_view> Find(const std::vector<int64_t>& keys, MDB_txn** reading) const {
    Check(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, reading) == 0, "mdb_txn_begin");
    std::vector<std::string_view> found;
    for (int64_t key : keys) {
      MDB_val wanted{sizeof(key), &key}, value;
      Check(mdb_get(*reading, database_, &wanted, &value) == 0, "mdb_get");
      found.emplace_back(static_cast<const char*>(value.mv_data), value.mv_size);
    }
    return found;
  }

 private:
  void Fill(const ItemTable& table, const TableFile& file) {
    MDB_txn* writing = nullptr;
    Check(mdb_txn_begin(environment_, nullptr, 0, &writing) == 0, "mdb_txn_begin");
    Check(mdb_dbi_open(writing, nullptr, MDB_INTEGERKEY | MDB_CREATE, &database_) == 0, "open");
    for (uint32_t row = 0; row < file.rows(); ++row) {
      int64_t number = file.keys().numbers[row];
      std::string blob = BlobOf(table, row + 1);
      MDB_val key{sizeof(number), &number}, value{blob.size(), blob.data()};
      Check(mdb_put(writing, database_, &key, &value, 0) == 0, "mdb_put");
    }
    Check(mdb_txn_commit(writing) == 0, "mdb_txn_commit");
  }

  MDB_env* environment_ = nullptr;
  MDB_dbi database_ = 0;
};

// All values of the rows, by feature.
void ReadBlobs(const ItemTable& table, const std::vector<std::string_view>& blobs) {
  std::vector<std::string> columns(table.features().size());
  for (const std::string_view blob : blobs) {
    const char* at = blob.data();
    for (size_t i = 0; i < columns.size(); ++i) {
      const DataType dtype = table.features()[i].feature.dtype;
      uint32_t size = NumberSize(dtype);
      if (dtype == DT_STRING) {
        std::memcpy(&size, at, sizeof(size));
        at += sizeof(size);
      }
      columns[i].append(at, size);
      at += size;
    }
  }
}

struct Times {
  std::vector<double> find, all;
  void Print(const char* name) const {
    std::printf("%s: %zu keys found in %.1f us, with all values in %.1f us\n", name, kKeys,
                MedianOf(find), MedianOf(all));
  }
};

}  // namespace

int main(int argc, char** argv) {
  Check(argc == 3, "expected the table's file and a folder");
  Clock::time_point start = Clock::now();
  std::shared_ptr<const TableFile> file;
  std::shared_ptr<const tables::FileBytes> bytes;
  Status status = tables::FileBytes::Read(argv[1], &bytes);
  if (status.ok()) status = TableFile::Read(bytes->view(), bytes, &file);
  Check(status.ok(), status.message.c_str());
  std::shared_ptr<const ItemTable> table;
  Check(ItemTable::Create(file, &table).ok(), "no table");
  Check(!file->header().has_text_keys, "expected keys that are numbers");
  std::printf("opened and checked in %.0f ms\n", MicrosecondsSince(start) / 1000);
  const Database database(argv[2], *table, *file);
  std::vector<size_t> features(table->features().size());
  std::iota(features.begin(), features.end(), size_t{0});
  std::mt19937_64 random(1);
  Times ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int64_t> wanted;
    for (size_t i = 0; i < kKeys; ++i) {
      wanted.push_back(file->keys().numbers[random() % file->rows()]);
    }
    const auto look_up = [&] {
      start = Clock::now();
      items::Keys keys;
      keys.numbers = wanted;
      std::vector<uint32_t> numbers;
      table->Find(keys, &numbers);
      ours.find.push_back(MicrosecondsSince(start));
      DecodedRequest request;
      items::AddColumns(table, std::move(numbers), features, &request);
      ReadColumns(request);
      ours.all.push_back(MicrosecondsSince(start));
    };
    const auto get = [&] {
      start = Clock::now();
      MDB_txn* reading = nullptr;
      const std::vector<std::string_view> blobs = database.Find(wanted, &reading);
      theirs.find.push_back(MicrosecondsSince(start));
      ReadBlobs(*table, blobs);
      theirs.all.push_back(MicrosecondsSince(start));
      mdb_txn_abort(reading);
    };
    // Whoever comes first may find less in the cache.
    round % 2 == 0 ? (look_up(), get()) : (get(), look_up());
  }
  ours.Print("table");
  theirs.Print("LMDB");
}
