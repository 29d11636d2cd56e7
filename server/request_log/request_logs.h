// Samples requests and, on its own thread, writes the sample to consecutive TFRecord files.
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
#include <vector>

#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/request_log/logging_config.h"
#include "server/wire/bytes.h"

namespace colcast::request_log {

// A call that was answered.
struct LoggedCall {
  std::string_view api;  // Predict, Classify, Regress or MultiInference
  std::string_view model_name;
  int64_t version = 0;  // the version that answered
  std::string_view signature_name;
  Bytes request;   // the API's message as received; not parsed
  Bytes response;  // the API's message as sent; not parsed
};

// A serialized tensorflow.serving.PredictionLog. `timestamp_seconds` counts from 1970.
std::string MakePredictionLog(const LoggedCall& call, double sampling_rate,
                              int64_t timestamp_seconds);

// Writes records to consecutive files; used by one thread at a time. The first record creates a
// file named PREFIX-20261122T040512Z-0000.tfrecord, with the time (UTC) and the first free number,
// so that servers may share a prefix. The file's mode is 0640. It contains only complete records,
// each written immediately.
class LogFile {
 public:
  // A new file begins when a record would make the current one larger than `max_file_bytes`, or
  // after it was deleted or renamed. A file with one record may be larger.
  LogFile(std::string prefix, int64_t max_file_bytes);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Returns UNAVAILABLE with the file and the system's reason if the record cannot be written. The
  // record is then lost, and the next one starts a new file.
  Status Write(std::string_view record);

 private:
  Status Open();
  Status Append(std::string_view bytes);
  bool IsGone() const;
  void Close();
  Status Failed(const char* what, int error) const;

  const std::string prefix_;
  const int64_t max_file_bytes_;
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

// The number of sampled requests to `model_name` by outcome: OK, RESOURCE_EXHAUSTED if too many
// bytes waited to be written, UNAVAILABLE if the record could not be written.
struct LogCounts {
  std::string model_name;
  std::array<int64_t, kNumStatusCodes> records{};
};

// All methods may be called from any thread.
class RequestLogs {
 public:
  struct Options {
    int64_t max_file_bytes = 256 << 20;   // see LogFile
    size_t max_waiting_bytes = 64 << 20;  // limit on records not yet written
  };

  explicit RequestLogs(Options options) : options_(options) {}
  // Writes the waiting records.
  ~RequestLogs();

  // From now on, logs exactly these models; the keys are their names. Continues the files whose
  // prefix is unchanged. Models may share a prefix.
  void Configure(const std::map<std::string, LoggingConfig>& models);

  struct Model;  // one model's log
  // Draws at random whether to log a request to `model`. Returns the log for Add(), or null. If no
  // model is logged, this only checks a flag.
  std::shared_ptr<Model> Sample(std::string_view model) const;

  // Queues a copy of the call for the writing thread; drops the call if too many bytes wait. Never
  // waits for a file.
  void Add(const std::shared_ptr<Model>& model, const LoggedCall& call);

  // Returns the counts of all models logged since the start, by name.
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
  std::atomic<bool> any_{false};  // whether any model has a rate above 0
  mutable std::shared_mutex models_mutex_;
  std::map<std::string, std::shared_ptr<Model>, std::less<>> models_ ABSL_GUARDED_BY(models_mutex_);
  std::map<std::string, std::shared_ptr<Counters>> counters_
      ABSL_GUARDED_BY(models_mutex_);  // includes removed models

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<Record> queue_ ABSL_GUARDED_BY(queue_mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(queue_mutex_) =
      0;  // size of the records in queue_ and of the one being written
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;
  Thread thread_ ABSL_GUARDED_BY(models_mutex_);  // started when the first model is logged
};

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_REQUEST_LOGS_H_
