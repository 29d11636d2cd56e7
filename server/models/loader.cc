#include "server/models/loader.h"

#include <chrono>
#include <utility>

#include "server/base/log.h"
#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/models/manifest.h"
#include "server/wire/feature_json.h"

namespace colcast::models {

using Clock = std::chrono::steady_clock;

namespace {

Status CheckUnchanged(const VersionDirectory& directory) {
  if (directory.files == 0 || FilesOf(directory.path) == directory.files) return OkStatus();
  return Unavailable("its files changed while it was loaded");
}

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
  report.model_name = job.model_name;
  report.version = job.directory.version;
  report.path = job.directory.path;
  report.attempt = job.attempt;
  std::shared_ptr<const Servable> servable;
  report.status = RunCaught("loading", [&] { return Load(job, &report, &servable); });
  if (!report.status.ok()) {
    report.status.message = "model \"" + job.model_name + "\" version " +
                            std::to_string(report.version) + " cannot be loaded from " +
                            job.directory.path + ": " + report.status.message;
  }
  if (options_.on_load) options_.on_load(report);
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
  Status status = CheckFiles(job.directory.path);
  if (status.ok()) status = CheckManifest(job.directory.path);
  if (status.ok()) status = memory_.Reserve(SizeOnDisk(job.directory.path), &reservation);
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
  report->loaded = true;
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

}  // namespace colcast::models
