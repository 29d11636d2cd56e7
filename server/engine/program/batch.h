// What a program runs on: rows of every domain, and the candidates that read them; of one request,
// of several, or of a slice of one (docs/domains.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_BATCH_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/planned_request.h"
#include "server/engine/wire_column.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

struct Batch {
  // The domain of users. Those of a signature that has no domains are the candidates' rows all.
  static constexpr size_t kUser = 0;

  struct Domain {
    int64_t rows = 1;
    // int64 [N], each in [0, rows). Empty where `rows` is 1 or N: candidate i reads the one row,
    // or row i.
    tensorflow::Tensor index;
    bool has_index() const { return index.NumElements() > 0; }
  };

  int64_t candidates = 0;       // N
  std::vector<Domain> domains;  // by the signature's domain
  // By the signature's input, with as many rows as its domain, or one; null: left out.
  std::vector<const WireColumn*> columns;
  // Whether rows of a domain may repeat though it has an index: they are of several requests.
  bool of_several = false;
  // Where they are known already: users' columns are not looked at.
  const std::vector<tensorflow::Tensor>* user_states = nullptr;

  // What sending columns once did for the request that these are the rows of.
  ExpansionStats Expansion(const PlannedRequest& planned) const {
    if (!has_any_index()) return planned.Expansion();
    ExpansionStats stats;
    stats.rows = candidates;
    return stats;
  }

  bool has_any_index() const {
    return std::any_of(domains.begin(), domains.end(),
                       [](const Domain& domain) { return domain.has_index(); });
  }
  bool has_index(int domain) const { return domain >= 0 && domains[domain].has_index(); }
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_BATCH_H_
