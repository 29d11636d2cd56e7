// The keys of a request's rows: one for each user or item, from all columns of that side.
//
// A key covers what every column is (dtype, inner dimensions, whether it came at all) and the row's
// elements, so two different rows never have the same bytes to be hashed. It does not depend on the
// rows beside it, nor on how numbers were encoded, nor on padding where it is known.
#ifndef COLCAST_SERVER_STATES_ROW_KEYS_H_
#define COLCAST_SERVER_STATES_ROW_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/base/status.h"
#include "server/states/key.h"
#include "server/wire/predict_request.h"

namespace colcast::states {

// Made to be used again: Begin(), then one Add for each column, always in the same order, then
// Finish(). What was added must outlive the last use of at().
class RowKeys {
 public:
  // `hash` is the store's whose states are looked for; it must outlive Finish().
  void Begin(int64_t rows, const KeyHash& hash);

  // A column that was left out: its default counts, which never changes.
  void AddAbsent();

  // A column that all rows share, whatever its shape.
  void AddShared(const Column& column);

  // A column whose first dimension is the rows. INVALID_ARGUMENT as CopyValues() and VisitStrings()
  // have it. REQUIRES that CheckValues(column, elements) was OK.
  //
  // `lengths`, null where nothing is padding, says how many entries of the second dimension count
  // in each row; the others are no part of its key, nor is how many there are. REQUIRES then a
  // second dimension and lengths within it.
  Status AddRows(const Column& column, int64_t elements, const int64_t* lengths = nullptr);

  // The keys, in the order of the rows.
  void Finish(std::vector<Key>* keys);

  // The elements of a row in the `index`th column given to AddRows(). Of a string column they are
  // no strings but what stands for them in the key.
  const uint8_t* at(size_t index, int64_t row) const {
    return sources_[index].data(arena_) + row * sources_[index].row_bytes;
  }

 private:
  // Where a column's elements lie one after the other: in the message if they do so there.
  struct Source {
    const uint8_t* message = nullptr;
    size_t offset = 0;  // else: in arena_
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
  std::vector<Source> sources_;  // what at() gives
  std::vector<Source> hashed_;   // the same or, where a row is padded, a hash of what counts
  std::vector<uint8_t> arena_;   // the first arena_used_ bytes of it
  size_t arena_used_ = 0;
  std::vector<uint8_t> block_;  // rows one after the other, as many as stay in the nearest cache
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_ROW_KEYS_H_
