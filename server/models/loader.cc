#include "server/models/loader.h"

#include <absl/base/thread_annotations.h>
#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "server/base/log.h"
#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/models/version_directory.h"
#include "server/wire/feature_json.h"

namespace colcast::models {

using Clock = std::chrono::steady_clock;

namespace {

Status CheckUnchanged(const VersionDirectory& directory) {
  if (directory.files == 0 || FilesOf(directory.path) == directory.files) return OkStatus();
  return Unavailable("its files changed while it was loaded");
}

namespace fs = std::filesystem;

}  // namespace

Loader::Loader(Options options, const engine::Engine* engine)
    : options_(std::move(options)), engine_(engine), memory_(options_.memory_margin_fraction) {}

Status Loader::Start(Job job, Done done) {
  JoinFinished();
  std::lock_guard<std::mutex> lock(mutex_);
  Loading& loading = loadings_.emplace_back();
  Status status = StartThread(
      "loading " + job.directory.path,
      [this, &loading, job = std::move(job), done = std::move(done)] {
        if (job.low_priority) LowerThisThreadsPriority();
        Run(job, done);
        std::lock_guard<std::mutex> lock(mutex_);
        loading.finished = true;
      },
      &loading.thread);
  if (!status.ok()) loadings_.pop_back();
  return status;
}

void Loader::Run(const Job& job, const Done& done) {
  LoadReport report;
  std::shared_ptr<const Servable> servable;
  report.status = RunCaught("loading", [&] { return Load(job, &report, &servable); });
  if (!report.status.ok()) {
    report.status.message = "model \"" + job.model_name + "\" version " +
                            std::to_string(job.directory.version) + " cannot be loaded from " +
                            job.directory.path + ": " + report.status.message;
  }
  done(report, std::move(servable));
}

// Waits until mapped tables are in memory and checked, so that the version's first requests do not
// wait for the disk. Does not wait if the tables exceed the available memory.
Status Loader::WaitForTables(const engine::Model& model) {
  constexpr std::chrono::milliseconds kBetweenLooks(200);
  engine::TableMemory memory = model.tables();
  if (memory.mapped > AvailableMemory()) return OkStatus();
  while (memory.damage.empty() && memory.checked < memory.mapped) {
    if (stop_.WaitFor(kBetweenLooks)) return Unavailable("the server is shutting down");
    memory = model.tables();
  }
  return memory.damage.empty() ? OkStatus() : Error(StatusCode::kDataLoss, memory.damage);
}

Status Loader::Load(const Job& job, LoadReport* report, std::shared_ptr<const Servable>* servable) {
  const Clock::time_point start = Clock::now();
  MemoryBudget::Reservation reservation;
  ModelSize size;
  Status status = CheckManifest(job.directory.path);
  if (status.ok()) status = SizeOnDisk(job.directory.path, &size);
  if (status.ok()) status = memory_.Reserve(size, &reservation);
  if (!status.ok()) return status;
  if (job.check && options_.check) status = options_.check(job.directory.path);
  if (!status.ok()) return status;
  std::unique_ptr<engine::Model> model;
  status = engine_->Load(job.directory.path, options_.tags, &model);
  report->load_time = Clock::now() - start;
  if (!status.ok()) return status;
  report->notes = model->description().notes;
  if (job.another_serves) status = WaitForTables(*model);
  if (!status.ok()) return status;
  inference::Batching batching;
  status = inference::BatchingOf(options_.batching, job.directory.path, &batching);
  if (!status.ok()) return status;
  inference::ItemSources items;
  if (options_.item_tables != nullptr) {
    items.tables = options_.item_tables->Of(job.model_name);
    rapidjson::Document record;
    if (ReadExportRecord(job.directory.path, &record).ok()) {
      items.features = items::ReadModelFeatures(record);
    }
  }
  status = Servable::Create(job.model_name, job.directory.version, std::move(model), servable,
                            batching, std::move(items));
  if (!status.ok()) return status;
  if ((*servable)->items() != nullptr) {
    for (std::string& problem : (*servable)->items()->problems()) {
      report->notes.push_back(std::move(problem));
    }
  }
  const Clock::time_point loaded = Clock::now();
  status =
      inference::WarmUp(**servable, job.directory.path, options_.warmup, &report->warmup_requests);
  report->warmup_time = Clock::now() - loaded;
  return status.ok() ? CheckUnchanged(job.directory) : status;
}

Status Loader::LoadAndDiscard(const std::string& directory) {
  Job job;
  job.directory.path = directory;
  LoadReport report;
  std::shared_ptr<const Servable> servable;
  return Load(job, &report, &servable);
}

void Loader::JoinFinished() {
  std::list<Loading> finished;  // joined after the lock is released
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto loading = loadings_.begin(); loading != loadings_.end();) {
    const auto next = std::next(loading);
    if (loading->finished) finished.splice(finished.end(), loadings_, loading);
    loading = next;
  }
}

// The servables waiting to be destroyed.
class Unloader::Queue {
 public:
  struct Item {
    std::shared_ptr<const Servable> servable;
    std::function<void()> on_destroyed;
  };

  void Push(Item item) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_) return;  // `item` is destroyed after the lock is released
    items_.push_back(std::move(item));
    changed_.notify_one();
  }

  void Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  // Destroys objects until the queue is closed and empty.
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closed_ || !items_.empty();
      });
      if (items_.empty()) return;
      Item item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      item.servable.reset();
      item.on_destroyed();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
};

Unloader::Unloader(int num_threads) : queue_(std::make_shared<Queue>()) {
  absl::Cleanup close = [this] { queue_->Close(); };
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back("unloading", [queue = queue_] {
      LowerThisThreadsPriority();
      queue->Work();
    });
  }
  std::move(close).Cancel();
}

Unloader::~Unloader() { queue_->Close(); }

std::shared_ptr<const Servable> Unloader::Share(std::shared_ptr<const Servable> servable,
                                                std::function<void()> on_destroyed) {
  const Servable* const address = servable.get();
  return {address,
          [queue = queue_, item = Queue::Item{std::move(servable), std::move(on_destroyed)}](
              const Servable*) mutable { queue->Push(std::move(item)); }};
}

Status SizeOnDisk(const std::string& directory, ModelSize* size) {
  *size = {};
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code gone;  // files may disappear meanwhile
    if (entry->is_regular_file(gone)) {
      const auto bytes = entry->file_size(gone);
      if (!gone) {
        size->bytes += static_cast<int64_t>(bytes);
        if (entry->path().stem() == "saved_model") size->graph_bytes += static_cast<int64_t>(bytes);
      }
    } else if (entry->is_other(gone)) {
      return FailedPrecondition(entry->path().native(), " is neither a regular file nor a folder");
    }
    entry.increment(error);
  }
  return OkStatus();
}

MemoryBudget::MemoryBudget(double margin_fraction, std::function<int64_t()> available)
    : margin_fraction_(margin_fraction), available_(std::move(available)) {}

MemoryBudget::Reservation::~Reservation() {
  if (budget_ == nullptr) return;
  std::lock_guard<std::mutex> lock(budget_->mutex_);
  budget_->reserved_ -= bytes_;
}

Status MemoryBudget::Reserve(const ModelSize& size, Reservation* reservation) {
  if (margin_fraction_ < 0) return OkStatus();
  const int64_t bytes = size.bytes + kGraphCopies * size.graph_bytes;
  const auto needed = static_cast<int64_t>(static_cast<double>(bytes) * (1 + margin_fraction_));
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t available = available_();
  if (needed > available - reserved_) {
    constexpr int64_t kMiB = 1 << 20;
    return ResourceExhausted("it would not fit in memory: it needs ", needed / kMiB, " MiB (",
                             size.bytes / kMiB, " MiB on disk, of which the graph takes ",
                             size.graph_bytes / kMiB, " MiB, and a margin of ", margin_fraction_,
                             ", --load_memory_margin_fraction), but ", available / kMiB,
                             " MiB are available, of which other loads in progress take ",
                             reserved_ / kMiB, " MiB");
  }
  reserved_ += needed;
  reservation->budget_ = this;
  reservation->bytes_ = needed;
  return OkStatus();
}

}  // namespace colcast::models
