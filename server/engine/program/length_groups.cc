#include "server/engine/program/length_groups.h"

#include <algorithm>

namespace colcast::engine {
namespace {

// Bounds the runs that one request can cause: each group is a separate run.
constexpr int kMostGroups = 256;

int64_t At(const std::vector<int64_t>& lengths, int64_t row) {
  return lengths.size() == 1 ? lengths[0] : lengths[row];
}

}  // namespace

void LengthGroups::SetOne() {
  count_ = 1;
  of_.clear();
  longest_.clear();
  longest_row_.clear();
  for (const Lengths& lengths : lists_) {
    const auto longest = std::max_element(lengths.begin(), lengths.end());
    longest_.push_back(longest == lengths.end() ? -1 : *longest);
    longest_row_.push_back(longest - lengths.begin());
  }
}

bool LengthGroups::Set(absl::Span<const int> inputs, absl::Span<const Input* const> columns,
                       int64_t rows, const Readers& readers) {
  const bool of_one = readers.rows.empty() && readers.requests.empty() && !readers.each_alone;
  if (Read(inputs, columns, rows)) {
    SetOne();
    if (of_one || rows <= 1 || GroupReaders(rows, readers)) return true;
  }
  lists_.clear();
  SetOne();
  return false;
}

bool LengthGroups::Read(absl::Span<const int> inputs, absl::Span<const Input* const> columns,
                        int64_t rows) {
  lists_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input* const column = columns[inputs[i]];
    if (column == nullptr) {
      lists_[i].assign(1, -1);
    } else if (!ReadLengths(*column, &lists_[i]) ||
               (column->count() != 1 && column->count() != rows)) {
      return false;
    }
  }
  return true;
}

bool LengthGroups::GroupReaders(int64_t rows, const Readers& readers) {
  const auto num_readers = readers.rows.empty() ? rows : static_cast<int64_t>(readers.rows.size());
  int64_t num_requests = 1;
  for (int64_t reader = 0; reader < num_readers; ++reader) {
    num_requests = std::max(num_requests, readers.request(reader) + 1);
  }
  const size_t lists = lists_.size();
  std::vector<int64_t> of_request(num_requests * lists, -1);
  for (size_t i = 0; i < lists; ++i) {
    for (int64_t reader = 0; reader < num_readers; ++reader) {
      int64_t& longest = of_request[readers.request(reader) * lists + i];
      longest = std::max(longest, At(lists_[i], readers.row(reader)));
    }
  }
  count_ = 0;
  longest_.clear();
  longest_row_.clear();
  of_.assign(rows, -1);
  std::vector<int> group_of(num_requests, -1);
  for (int64_t reader = 0; reader < num_readers; ++reader) {
    const int64_t request = readers.request(reader);
    if (group_of[request] < 0) {
      group_of[request] = GroupOf(absl::MakeConstSpan(of_request).subspan(request * lists, lists));
      if (group_of[request] < 0) return false;
    }
    if (!Join(readers.row(reader), group_of[request])) return false;
  }
  std::vector<int64_t> own(lists);
  for (int64_t row = 0; row < rows; ++row) {
    if (of_[row] >= 0) continue;
    for (size_t i = 0; i < lists; ++i) own[i] = At(lists_[i], row);
    const int group = GroupOf(own);
    if (group < 0) return false;
    Join(row, group);
  }
  return true;
}

// Finds or adds the group whose longest lists have these lengths; -1 if there are too many groups.
int LengthGroups::GroupOf(absl::Span<const int64_t> longest) {
  for (int group = 0; group < count_; ++group) {
    if (this->longest(group) == longest) return group;
  }
  if (count_ == kMostGroups) return -1;
  longest_.insert(longest_.end(), longest.begin(), longest.end());
  longest_row_.resize(longest_.size(), -1);
  return count_++;
}

bool LengthGroups::Join(int64_t row, int group) {
  if (of_[row] >= 0) return of_[row] == group;
  of_[row] = group;
  const size_t lists = lists_.size();
  for (size_t i = 0; i < lists; ++i) {
    int64_t& known = longest_row_[group * lists + i];
    if (known < 0 && At(lists_[i], row) == longest_[group * lists + i]) known = row;
  }
  return true;
}

void LengthGroups::AddLongest(int group, std::vector<int64_t>* rows) const {
  for (size_t i = 0; i < lists_.size(); ++i) {
    const Lengths& lengths = lists_[i];
    if (lengths.size() == 1) continue;  // all rows share this length
    const int64_t longest = longest_[group * lists_.size() + i];
    const auto is_longest = [&](int64_t row) { return lengths[row] == longest; };
    if (std::any_of(rows->begin(), rows->end(), is_longest)) continue;
    const int64_t row = longest_row_[group * lists_.size() + i];
    rows->insert(std::lower_bound(rows->begin(), rows->end(), row), row);
  }
}

}  // namespace colcast::engine
