// Groups the rows of a domain by the longest lists of the requests to which they belong.
//
// TensorFlow pads the lists of a run to the longest one, so values computed across a list depend on
// that length. Rows that run together therefore belong to requests whose longest lists are equally
// long, and one row of the run has a list of that length.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_LENGTH_GROUPS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_LENGTH_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/input.h"

namespace colcast::engine {

// The readers of a domain's rows: the candidates, or the rows themselves.
struct Readers {
  absl::Span<const int64_t> rows;      // each reader's row; empty if reader i reads row i
  absl::Span<const int64_t> requests;  // each reader's request; empty if all belong to one
  bool each_alone = false;             // reader i is the only reader of request i

  int64_t row(int64_t reader) const { return rows.empty() ? reader : rows[reader]; }
  int64_t request(int64_t reader) const {
    if (each_alone) return reader;
    return requests.empty() ? 0 : requests[reader];
  }
};

// Each thread reuses one object.
class LengthGroups {
 public:
  // Groups `rows` rows by the longest lists of their requests. A row without readers counts as a
  // request of its own. `inputs` are the positions of the lists' lengths in `columns`; a column may
  // be null, or have one row for all. Returns false, with one group, if a length cannot be read, if
  // requests with different longest lists read the same row, or if there are too many groups.
  bool Set(absl::Span<const int> inputs, absl::Span<const Input* const> columns, int64_t rows,
           const Readers& readers);

  int count() const { return count_; }
  int of(int64_t row) const { return of_.empty() ? 0 : of_[row]; }

  // The longest length of each list in a group; -1 for a list that was left out.
  absl::Span<const int64_t> longest(int group) const {
    return absl::MakeConstSpan(longest_).subspan(group * lists_.size(), lists_.size());
  }

  // Adds rows of the group to `rows`, keeping it in ascending order, so that for each list one of
  // the rows has the group's longest length.
  void AddLongest(int group, std::vector<int64_t>* rows) const;

 private:
  using Lengths = std::vector<int64_t>;  // one per row, or a single one for all

  bool Read(absl::Span<const int> inputs, absl::Span<const Input* const> columns, int64_t rows);
  bool GroupReaders(int64_t rows, const Readers& readers);
  void SetOne();
  int GroupOf(absl::Span<const int64_t> longest);
  bool Join(int64_t row, int group);

  std::vector<Lengths> lists_;
  int count_ = 1;
  std::vector<int32_t> of_;  // per row; empty if there is one group
  // One element per group and list.
  std::vector<int64_t> longest_;
  std::vector<int64_t> longest_row_;  // a row that has the longest list
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_LENGTH_GROUPS_H_
