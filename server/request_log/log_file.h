// A log of calls in consecutive TFRecord files.
#ifndef COLCAST_SERVER_REQUEST_LOG_LOG_FILE_H_
#define COLCAST_SERVER_REQUEST_LOG_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/base/status.h"
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

// Used by one thread at a time. The first record of a file opens it, named
// PREFIX-20261122T040512Z-0000.tfrecord after the time (UTC) and the first free number, so that
// servers may share a prefix; its mode is 0640. It contains only complete records, each written
// immediately.
class LogFile {
 public:
  // A record that would make a file larger than `max_file_bytes` starts the next one; a single
  // record may be larger than that.
  LogFile(std::string prefix, int64_t max_file_bytes);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // UNAVAILABLE, naming the file and the system's reason. The record is then lost, and the next one
  // goes into a new file.
  Status Write(std::string_view record);

 private:
  Status Open();
  Status Append(std::string_view bytes);
  void Close();
  Status Failed(const char* what, int error) const;

  const std::string prefix_;
  const int64_t max_file_bytes_;
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_LOG_FILE_H_
