// Who sends requests: each caller has its turn in the queue and its counts.
#ifndef COLCAST_SERVER_CALLERS_CALLERS_H_
#define COLCAST_SERVER_CALLERS_CALLERS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/callers/caller_counts.h"

namespace colcast::callers {

// Where requests name their caller.
struct NameSource {
  std::string header;        // in lower case; empty: no header
  bool certificate = false;  // the client's
};

class Callers {
 public:
  explicit Callers(NameSource names) : names_(std::move(names)) {}

  const NameSource& names() const { return names_; }
  CallerCounts& counts() { return counts_; }

 private:
  const NameSource names_;
  CallerCounts counts_;
};

// The caller of one request.
class Caller {
 public:
  // `sent`: the name that the client claims; one that is not short printable ASCII counts as none.
  // `callers` outlives this.
  Caller(Callers* callers, std::string_view sent);

  // For Job::client(): the same for all requests of a caller. 0: it has no name.
  uint64_t client() const { return client_; }

  // Counts an answered request. `rows`: 0 unless it was answered OK.
  void Count(int64_t rows, std::chrono::nanoseconds run_time);

 private:
  uint64_t client_ = 0;
  CallerCounts::Counts& counts_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLERS_H_
