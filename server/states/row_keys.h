// Computes the keys of a request's rows in one domain, from all columns of that domain.
//
// A key covers each column's dtype, inner dimensions and presence, and the row's elements, so two
// different rows never hash the same bytes. It does not depend on the request's other rows, on how
// numbers were encoded, or on padding if the lengths of rows are given.
#ifndef COLCAST_SERVER_STATES_ROW_KEYS_H_
#define COLCAST_SERVER_STATES_ROW_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/base/status.h"
#include "server/states/key.h"
#include "server/wire/predict_request.h"

namespace colcast::states {

// Reusable. Call Begin(), then one Add method for each column, always in the same order, then
// Finish(). The columns must outlive the last use of at().
class RowKeys {
 public:
  // `hash` belongs to the store in which the keys will be looked up; it must outlive Finish().
  void Begin(int64_t rows, const KeyHash& hash);

  // Adds a column that the request left out. Its default is not hashed, since it never changes.
  void AddAbsent();

  // Adds a column that all rows share, whatever its shape.
  void AddShared(const Column& column);

  // Adds a column whose first dimension is the rows. Returns INVALID_ARGUMENT as CopyValues() and
  // VisitStrings() do. REQUIRES that CheckValues(column, elements) was OK.
  //
  // If not null, `lengths` gives each row's number of real entries in the second dimension; the
  // rest is padding, which does not affect the key. REQUIRES a second dimension, and lengths no
  // greater than its size.
  Status AddRows(const Column& column, int64_t elements, const int64_t* lengths = nullptr);

  // The keys, in the order of the rows.
  void Finish(std::vector<Key>* keys);

  // The elements of a row in the `index`th column passed to AddRows(). Strings are in the
  // fixed-size form that keys use.
  const uint8_t* at(size_t index, int64_t row) const {
    return sources_[index].data(arena_) + row * sources_[index].row_bytes;
  }

 private:
  // A column's contiguous elements: in the message if possible, else copied to `arena_`.
  struct Source {
    const uint8_t* message = nullptr;
    size_t offset = 0;  // position in `arena_`, if `message` is null
    size_t row_bytes = 0;

    const uint8_t* data(const std::vector<uint8_t>& arena) const {
      return message != nullptr ? message : arena.data() + offset;
    }
  };

  void AddHeader(uint8_t kind, const Column& column, size_t first_dim);
  void AddHeaderBytes(const Bytes& bytes);
  void AddStored(const Column& column);
  void AddHeaderList(const std::vector<Bytes>& list);
  uint8_t* Allocate(size_t bytes, Source* source);
  Status Read(const Column& column, int64_t elements, Source* source);
  Source WithoutPadding(const Source& source, int64_t entries, const int64_t* lengths);
  Status AddStrings(const Column& column, int64_t elements, Source* source);

  int64_t rows_ = 0;
  const KeyHash* hash_ = nullptr;
  std::vector<uint8_t> header_;
  std::vector<Source> sources_;  // the rows that at() returns
  // What Finish() hashes: `sources_`, with padded rows replaced by hashes of their real entries.
  std::vector<Source> hashed_;
  std::vector<uint8_t> arena_;  // the first `arena_used_` bytes are in use
  size_t arena_used_ = 0;
  std::vector<uint8_t> block_;  // rows assembled for hashing, as many as fit the L1 cache
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_ROW_KEYS_H_
