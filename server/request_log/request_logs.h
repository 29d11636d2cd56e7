// The logs of requests: which requests are in the sample, and the thread that writes them.
#ifndef COLCAST_SERVER_REQUEST_LOG_REQUEST_LOGS_H_
#define COLCAST_SERVER_REQUEST_LOG_REQUEST_LOGS_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/base/status.h"
#include "server/request_log/log_file.h"
#include "server/request_log/logging_config.h"
#include "server/request_log/prediction_log.h"

namespace colcast::request_log {

// A request to `model_name` that was drawn, by what became of its record: OK, RESOURCE_EXHAUSTED if
// too much waited to be written, UNAVAILABLE if it could not be.
struct LogCounts {
  std::string model_name;
  std::array<int64_t, kNumStatusCodes> records{};
};

// All methods may be called from any thread.
class RequestLogs {
 public:
  struct Options {
    int64_t max_file_bytes = 256 << 20;   // as LogFile has it
    size_t max_waiting_bytes = 64 << 20;  // of records that the thread has not written yet
  };

  explicit RequestLogs(Options options) : options_(options) {}
  // Writes what waits.
  ~RequestLogs();

  // Logs these models, by name, from now on and no others. Files whose prefix stays are gone on
  // with; models may share one.
  void Configure(const std::map<std::string, LoggingConfig>& models);

  struct Model;  // one model's log
  // Draws: the log that a request to `model` goes to, null for most. Where no model is logged it
  // costs the look at a flag.
  std::shared_ptr<Model> Sample(std::string_view model) const;

  // Never waits for a file: the thread writes the record, or it is dropped. The call's bytes are
  // copied.
  void Add(const std::shared_ptr<Model>& model, const LoggedCall& call);

  // Of the models logged since the start, by name.
  std::vector<LogCounts> Counts() const;

 private:
  struct Counters;
  struct File;
  struct Record {
    std::shared_ptr<Model> model;
    std::string bytes;
  };

  void Run();
  void Write(const Record& record);

  const Options options_;
  std::atomic<bool> any_{false};  // whether models_ has an entry with a rate over 0
  mutable std::shared_mutex models_mutex_;
  std::map<std::string, std::shared_ptr<Model>, std::less<>> models_ ABSL_GUARDED_BY(models_mutex_);
  std::map<std::string, std::shared_ptr<Counters>> counters_
      ABSL_GUARDED_BY(models_mutex_);  // of models that are gone, too

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<Record> queue_ ABSL_GUARDED_BY(queue_mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(queue_mutex_) =
      0;  // of queue_ and of what is being written
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(models_mutex_);  // from the first model that is logged on
};

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_REQUEST_LOGS_H_
