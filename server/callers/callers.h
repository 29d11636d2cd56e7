// The callers who send requests. Each has its own turn in the queue and its own counts.
#ifndef COLCAST_SERVER_CALLERS_CALLERS_H_
#define COLCAST_SERVER_CALLERS_CALLERS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/callers/caller_counts.h"

namespace colcast::callers {

// Where requests give their caller's name.
struct NameSource {
  std::string header;        // in lower case; empty for none
  bool certificate = false;  // the client's certificate
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
  // `sent` is the name that the client claims; one that is not short printable ASCII counts as
  // none. `callers` must outlive this object.
  Caller(Callers* callers, std::string_view sent);

  // For Job::client(): the same for all requests of a caller; 0 without a name.
  uint64_t client() const { return client_; }

  // Counts an answered request. `rows` is 0 unless it was answered OK.
  void Count(int64_t rows, std::chrono::nanoseconds run_time);

 private:
  uint64_t client_ = 0;
  CallerCounts::Counts& counts_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLERS_H_
