// Who sends requests: each caller has its turn in the queue, what it may ask (quotas.h), and its
// counts.
#ifndef COLCAST_SERVER_CALLERS_CALLERS_H_
#define COLCAST_SERVER_CALLERS_CALLERS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/callers/caller_counts.h"
#include "server/callers/name_source.h"
#include "server/callers/quota_config.h"
#include "server/callers/quotas.h"

namespace colcast::callers {

class Callers {
 public:
  struct Options {
    NameSource names;
    std::string quota_file;                             // empty: nothing is limited
    std::chrono::milliseconds quota_file_poll_wait{0};  // between looks at it; 0: it is read once
  };

  // Errors of ReadQuotaConfig().
  static Status Create(const Options& options, std::unique_ptr<Callers>* made);

  const NameSource& names() const { return options_.names; }
  Quotas& quotas() { return *quotas_; }
  CallerCounts& counts() { return counts_; }

  // Sorted as CallerCounts has it.
  std::vector<CallerStats> Stats();

 private:
  explicit Callers(const Options& options) : options_(options) {}

  const Options options_;
  CallerCounts counts_;
  std::unique_ptr<Quotas> quotas_;
  std::optional<QuotaFile> quota_file_;  // the first to go
};

// A request, from when it came until it is answered. Not on several threads at once.
class CallerRequest {
 public:
  // `sent`: what the client says is its name. `callers` outlives the request.
  CallerRequest(Callers* callers, std::string_view sent);

  // As Job::client(): the same for all of a caller's. 0: it has no name.
  uint64_t client() const;

  // Both have the errors of Quotas, and may be called again, whether it was refused or not.
  // Before it waits, and when its model is known. Empty: it is not yet.
  Status Enter(const std::string& model);
  // Before it runs.
  Status TakeRows(int64_t rows);

  // It is answered. `rows` are 0 if with an error.
  void Finish(int64_t rows, std::chrono::nanoseconds run_time);

 private:
  Callers& callers_;
  const std::string name_;
  CallerCounts::Counts& counts_;
  Quotas::Place place_;
  std::optional<std::string> model_;  // that it has its place for
  bool has_rows_ = false;
  std::optional<Limit> refused_by_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLERS_H_
