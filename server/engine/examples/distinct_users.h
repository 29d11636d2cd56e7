// Converts columns that repeat each user on every row, as tf.Examples do, to one row per user plus
// row_to_user (server/engine/program/domains.h).
#ifndef COLCAST_SERVER_ENGINE_EXAMPLES_DISTINCT_USERS_H_
#define COLCAST_SERVER_ENGINE_EXAMPLES_DISTINCT_USERS_H_

#include <cstdint>
#include <vector>

#include "server/states/keys.h"
#include "server/wire/predict_request.h"

namespace colcast::engine {

// Can be reused for further requests.
class DistinctUsers {
 public:
  // Below this average number of rows per user, deduplication saves little.
  static constexpr int64_t kFewestRowsPerUser = 2;

  // Two rows belong to the same user if they have equal bytes in all columns that `of_user` marks
  // by position. In those columns, keeps only each user's first row, in order of first occurrence;
  // adds the column row_to_user. Other columns and columns of one row do not change. Views into
  // this object and into `columns` are valid until the next call.
  //
  // Returns false, without changes, below kFewestRowsPerUser. REQUIRES columns of `rows` rows or
  // one row, with numbers in tensor_content and strings as ExampleDecoder makes them.
  bool KeepOnce(const std::vector<bool>& of_user, int64_t rows, DecodedRequest* columns);

 private:
  bool TellApart(const std::vector<bool>& of_user, int64_t rows, const DecodedRequest& columns);

  const states::KeyHash hash_;
  states::RowKeys row_keys_;
  std::vector<states::Key> keys_;
  std::vector<int64_t> first_rows_;   // per user
  std::vector<int64_t> row_to_user_;  // per row
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXAMPLES_DISTINCT_USERS_H_
