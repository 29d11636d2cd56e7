// What became of a request -> what is counted of its caller.
#ifndef COLCAST_SERVER_CALLER_RECORD_H_
#define COLCAST_SERVER_CALLER_RECORD_H_

#include <algorithm>

#include "server/callers/callers.h"
#include "server/metrics/metrics.h"

namespace colcast {

inline void CountFor(const metrics::RequestRecord& record, callers::Caller* caller) {
  const int64_t rows = record.code == StatusCode::kOk ? record.expansion.rows : 0;
  caller->Count(rows, record.runtime / std::max(1, record.requests_in_run));
}

}  // namespace colcast

#endif  // COLCAST_SERVER_CALLER_RECORD_H_
