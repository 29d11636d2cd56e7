// Columns that repeat each user on every row, as tf.Examples have them -> a row per user, and
// row_to_user (server/engine/program/domains.h).
#ifndef COLCAST_SERVER_ENGINE_EXAMPLES_DISTINCT_USERS_H_
#define COLCAST_SERVER_ENGINE_EXAMPLES_DISTINCT_USERS_H_

#include <cstdint>
#include <vector>

#include "server/states/key.h"
#include "server/states/row_keys.h"
#include "server/wire/predict_request.h"

namespace colcast::engine {

// Made to be used again.
class DistinctUsers {
 public:
  // With fewer rows per user than this, on average, there is little to be saved.
  static constexpr int64_t kFewestRowsPerUser = 2;

  // Two rows are one user's if they have the same bytes in all columns that `of_user` marks, by
  // position. Of these columns each user's first row is kept, in the order in which users first
  // come, and the column row_to_user is added; columns of one row stay as they are, and so do all
  // others. Views into this object and into `columns` itself hold until the next use.
  //
  // False, and nothing is changed, below kFewestRowsPerUser. REQUIRES columns of `rows` rows or
  // one, of numbers in tensor_content and strings, as ExampleDecoder makes them.
  bool KeepOnce(const std::vector<bool>& of_user, int64_t rows, DecodedRequest* columns);

 private:
  bool TellApart(const std::vector<bool>& of_user, int64_t rows, const DecodedRequest& columns);

  const states::KeyHash hash_;
  states::RowKeys row_keys_;
  std::vector<states::Key> keys_;
  std::vector<int64_t> first_rows_;   // by user
  std::vector<int64_t> row_to_user_;  // by row
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXAMPLES_DISTINCT_USERS_H_
