#include "server/request_log/request_logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>

#include "server/base/draw.h"
#include "server/base/log.h"
#include "server/inference/tfrecord.h"
#include "server/wire/writer.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::request_log {

namespace {

using tensorflow::serving::PredictionLog;
using tensorflow::serving::PredictLog;

// The field of PredictionLog that holds the log message of `api`. All these log messages number
// their request and response fields as PredictLog does.
uint32_t LogField(std::string_view api) {
  if (api == "Classify") return PredictionLog::kClassifyLogFieldNumber;
  if (api == "Regress") return PredictionLog::kRegressLogFieldNumber;
  if (api == "MultiInference") return PredictionLog::kMultiInferenceLogFieldNumber;
  return PredictionLog::kPredictLogFieldNumber;
}

std::string Metadata(const LoggedCall& call, double sampling_rate, int64_t timestamp_seconds) {
  PredictionLog log;
  auto* metadata = log.mutable_log_metadata();
  auto* spec = metadata->mutable_model_spec();
  spec->set_name(std::string(call.model_name));
  spec->mutable_version()->set_value(call.version);
  spec->set_signature_name(std::string(call.signature_name));
  metadata->mutable_sampling_config()->set_sampling_rate(sampling_rate);
  metadata->set_timestamp_secs(timestamp_seconds);
  return log.SerializeAsString();
}

void WriteField(uint32_t field, const Bytes& body, StringWriter* writer) {
  writer->Head(field, body.size());
  body.ForEachPiece([writer](const uint8_t* data, size_t size) { writer->Raw(data, size); });
}

}  // namespace

std::string MakePredictionLog(const LoggedCall& call, double sampling_rate,
                              int64_t timestamp_seconds) {
  std::string log = Metadata(call, sampling_rate, timestamp_seconds);
  const uint32_t field = LogField(call.api);
  const size_t body = FieldSize(PredictLog::kRequestFieldNumber, call.request.size()) +
                      FieldSize(PredictLog::kResponseFieldNumber, call.response.size());
  log.reserve(log.size() + FieldSize(field, body));
  StringWriter writer(&log);
  writer.Head(field, body);
  WriteField(PredictLog::kRequestFieldNumber, call.request, &writer);
  WriteField(PredictLog::kResponseFieldNumber, call.response, &writer);
  return log;
}

namespace {

constexpr int kMaxNumber = 10'000;  // limit on files with the same prefix and time

std::string TimeText() {
  const std::time_t now = std::time(nullptr);
  std::tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

}  // namespace

LogFile::LogFile(std::string prefix, int64_t max_file_bytes)
    : prefix_(std::move(prefix)), max_file_bytes_(max_file_bytes) {}

LogFile::~LogFile() { Close(); }

Status LogFile::Write(std::string_view record) {
  const std::string framed = inference::TfRecord(record);
  const auto bytes = static_cast<int64_t>(framed.size());
  if (file_ >= 0 && (size_ + bytes > max_file_bytes_ || IsGone())) Close();
  if (file_ < 0) {
    if (Status status = Open(); !status.ok()) return status;
  }
  Status status = Append(framed);
  if (status.ok()) {
    size_ += bytes;
  } else {
    // Removes an incomplete record, at which every reader would stop.
    [[maybe_unused]] int ignored = ftruncate(file_, size_);
    if (size_ == 0) ignored = unlink(path_.c_str());
    Close();
  }
  return status;
}

Status LogFile::Open() {
  const std::string begin = prefix_ + '-' + TimeText() + '-';
  for (int number = 0; number < kMaxNumber; ++number) {
    char text[16];
    std::snprintf(text, sizeof(text), "%04d.tfrecord", number);
    path_ = begin + text;
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0640);
    if (file_ >= 0) break;
    if (errno != EEXIST) return Failed("cannot be opened", errno);
  }
  if (file_ < 0) return Failed("cannot be opened", EEXIST);
  size_ = 0;
  return OkStatus();
}

Status LogFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return Failed("cannot be written", errno);
    }
  }
  return OkStatus();
}

// Whether the file was deleted or renamed.
bool LogFile::IsGone() const {
  struct stat named {
  }, open{};
  return stat(path_.c_str(), &named) != 0 || fstat(file_, &open) != 0 ||
         named.st_ino != open.st_ino || named.st_dev != open.st_dev;
}

void LogFile::Close() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

Status LogFile::Failed(const char* what, int error) const {
  return Unavailable("request log: ", path_, ' ', what, ": ",
                     std::generic_category().message(error));
}

struct RequestLogs::Counters {
  std::array<std::atomic<int64_t>, kNumStatusCodes> records{};
  void Count(StatusCode code) { records[static_cast<size_t>(code)].fetch_add(1); }
};

// Used only by the writing thread.
struct RequestLogs::File {
  File(const std::string& prefix, int64_t max_file_bytes) : log(prefix, max_file_bytes) {}
  LogFile log;
  bool failing = false;  // the last record could not be written, and this was logged
};

struct RequestLogs::Model {
  LoggingConfig config;
  std::shared_ptr<File> file;
  std::shared_ptr<Counters> counters;
};

RequestLogs::~RequestLogs() {
  {
    std::lock_guard<std::mutex> lock(queue_mutex_);
    stopping_ = true;
  }
  queue_changed_.notify_one();
}

void RequestLogs::Configure(const std::map<std::string, LoggingConfig>& models) {
  std::unique_lock<std::shared_mutex> lock(models_mutex_);
  std::map<std::string, std::shared_ptr<File>> files;
  for (const auto& [name, model] : models_) files[model->config.filename_prefix] = model->file;
  models_.clear();
  for (const auto& [name, config] : models) {
    if (config.sampling_rate == 0) continue;
    std::shared_ptr<File>& file = files[config.filename_prefix];
    if (!file) file = std::make_shared<File>(config.filename_prefix, options_.max_file_bytes);
    std::shared_ptr<Counters>& counters = counters_[name];
    if (!counters) counters = std::make_shared<Counters>();
    models_[name] = std::make_shared<Model>(Model{config, file, counters});
  }
  any_ = !models_.empty();
  if (!any_ || thread_.joinable()) return;
  const Status status = StartThread(
      "the request log", [this] { Run(); }, &thread_);
  if (!status.ok()) LogError(status.message + "; requests are not logged");
}

std::shared_ptr<RequestLogs::Model> RequestLogs::Sample(std::string_view model) const {
  if (!any_.load(std::memory_order_relaxed)) return nullptr;
  std::shared_lock<std::shared_mutex> lock(models_mutex_);
  const auto found = models_.find(model);
  if (found == models_.end() || !Draw(found->second->config.sampling_rate)) return nullptr;
  return found->second;
}

void RequestLogs::Add(const std::shared_ptr<Model>& model, const LoggedCall& call) {
  const size_t least = call.request.size() + call.response.size();
  const auto fits = [this](size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_) {
    return waiting_bytes_ + bytes <= options_.max_waiting_bytes;
  };
  std::unique_lock<std::mutex> lock(queue_mutex_);
  if (!fits(least)) return model->counters->Count(StatusCode::kResourceExhausted);
  lock.unlock();
  std::string bytes = MakePredictionLog(call, model->config.sampling_rate, std::time(nullptr));
  lock.lock();
  if (!fits(bytes.size())) return model->counters->Count(StatusCode::kResourceExhausted);
  waiting_bytes_ += bytes.size();
  queue_.push_back({model, std::move(bytes)});
  lock.unlock();
  queue_changed_.notify_one();
}

std::vector<LogCounts> RequestLogs::Counts() const {
  std::vector<LogCounts> counts;
  std::shared_lock<std::shared_mutex> lock(models_mutex_);
  for (const auto& [name, counters] : counters_) {
    counts.push_back({name, {}});
    std::copy(counters->records.begin(), counters->records.end(), counts.back().records.begin());
  }
  return counts;
}

void RequestLogs::Run() {
  std::unique_lock<std::mutex> lock(queue_mutex_);
  while (true) {
    queue_changed_.wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_) {
      return stopping_ || !queue_.empty();
    });
    if (queue_.empty()) return;
    const Record record = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    Write(record);
    lock.lock();
    waiting_bytes_ -= record.bytes.size();
  }
}

void RequestLogs::Write(const Record& record) {
  File& file = *record.model->file;
  const Status status = file.log.Write(record.bytes);
  record.model->counters->Count(status.code);
  if (file.failing == !status.ok()) return;
  file.failing = !status.ok();
  if (file.failing) {
    LogError(status.message + "; requests are not logged until this is fixed");
  } else {
    LogInfo("request log: files of " + record.model->config.filename_prefix + " are written again");
  }
}

}  // namespace colcast::request_log
