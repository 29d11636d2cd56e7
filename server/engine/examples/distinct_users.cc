#include "server/engine/examples/distinct_users.h"

#include <string>
#include <utility>

#include "server/engine/rows.h"
#include "server/states/keys.h"
#include "server/wire/column.h"

namespace colcast::engine {
namespace {

bool HasRows(const Column& column, int64_t rows) { return column.dims[0] == rows; }

void KeepStrings(const std::vector<int64_t>& rows, Column* column) {
  std::vector<Bytes> strings;
  int64_t elements;
  // Cannot fail: both calls succeeded when the keys were made.
  if (!ElementCount(*column, &elements).ok() || !AddStrings(*column, elements, &strings).ok())
    return;
  const int64_t per_row = elements / column->dims[0];
  column->values.Clear();
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < per_row; ++i) column->values.AddString(strings[row * per_row + i]);
  }
}

void KeepNumbers(const std::vector<int64_t>& rows, Column* column, DecodedRequest* columns) {
  const std::string_view all = column->values.tensor_content.view();
  const size_t row_bytes = all.size() / column->dims[0];
  std::string kept;
  kept.reserve(rows.size() * row_bytes);
  for (const int64_t row : rows) kept.append(all, row * row_bytes, row_bytes);
  column->values.tensor_content = Bytes(columns->Keep(std::move(kept)));
}

}  // namespace

bool DistinctUsers::KeepOnce(const std::vector<bool>& of_user, int64_t rows,
                             DecodedRequest* columns) {
  if (!TellApart(of_user, rows, *columns)) return false;
  const auto users = static_cast<int64_t>(first_rows_.size());
  for (size_t i = 0; i < of_user.size(); ++i) {
    Column* const column = columns->mutable_column(i);
    if (!of_user[i] || !HasRows(*column, rows)) continue;
    if (column->dtype == DT_STRING) {
      KeepStrings(first_rows_, column);
    } else {
      KeepNumbers(first_rows_, column, columns);
    }
    column->dims[0] = users;
  }
  Column* const added = columns->AddColumn(kRowToUser);
  added->dtype = DT_INT64;
  added->dims = {rows};
  added->values.tensor_content = Bytes(row_to_user_.data(), rows * sizeof(int64_t));
  return true;
}

bool DistinctUsers::TellApart(const std::vector<bool>& of_user, int64_t rows,
                              const DecodedRequest& columns) {
  if (columns.Find(kRowToUser) != nullptr) return false;
  row_keys_.Begin(rows, hash_);
  for (size_t i = 0; i < of_user.size(); ++i) {
    const Column& column = columns.columns()[i];
    if (!of_user[i] || !HasRows(column, rows)) continue;
    int64_t elements;
    if (!ElementCount(column, &elements).ok() || !CheckValues(column, elements).ok() ||
        !row_keys_.AddRows(column, elements).ok()) {
      return false;
    }
  }
  row_keys_.Finish(&keys_);
  return states::FindDistinctRows(keys_, rows / kFewestRowsPerUser, &first_rows_, &row_to_user_);
}

}  // namespace colcast::engine
