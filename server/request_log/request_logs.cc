#include "server/request_log/request_logs.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/base/draw.h"
#include "server/base/log.h"

namespace colcast::request_log {

struct RequestLogs::Counters {
  std::array<std::atomic<int64_t>, kNumStatusCodes> records{};
  void Count(StatusCode code) { records[static_cast<size_t>(code)].fetch_add(1); }
};

// Used only by the thread that writes.
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
