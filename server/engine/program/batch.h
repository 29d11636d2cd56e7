// What a program runs on: rows of every domain, and the candidates that read them; of one request,
// of several, or of a slice of one (docs/domains.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_BATCH_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/wire_column.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

struct Batch {
  // The domain of users. A signature without domains has candidates' rows only.
  static constexpr size_t kUser = 0;

  enum class Form : uint8_t {
    kRows,      // each column has a row for every candidate, or one for all
    kOneUser,   // the same, planned for the exact program: the user's columns stay one row
    kIndexed,   // candidates read rows of some domains by an index
    kPrefetch,  // one user's columns and no candidate
  };

  struct Domain {
    int64_t rows = 1;
    // int64 [N], each in [0, rows). Empty where `rows` is 1 or N: candidate i reads the one row,
    // or row i.
    tensorflow::Tensor index;
    bool has_index() const { return index.NumElements() > 0; }
  };

  Form form = Form::kRows;
  bool of_several = false;  // requests: rows of a domain may repeat though it has an index
  int64_t candidates = 0;   // N
  const std::vector<int>* outputs = nullptr;  // positions in the sorted aliases, rising
  std::vector<Domain> domains;                // by the signature's domain
  // By the signature's input, with as many rows as its domain, or one; null: left out.
  std::vector<const WireColumn*> columns;
  // Computed already if not null: users' columns are not read then.
  const std::vector<tensorflow::Tensor>* user_states = nullptr;

  bool has_index(int domain) const { return has(domain) && domains[domain].has_index(); }
  int64_t rows_of(int domain) const { return has(domain) ? domains[domain].rows : candidates; }

 private:
  bool has(int domain) const { return domain >= 0 && static_cast<size_t>(domain) < domains.size(); }
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_BATCH_H_
