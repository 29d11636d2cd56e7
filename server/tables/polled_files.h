// Loads files as they appear. Copies them into memory, so that later changes have no effect.
#ifndef COLCAST_SERVER_TABLES_POLLED_FILES_H_
#define COLCAST_SERVER_TABLES_POLLED_FILES_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/base/file.h"
#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/tables/safetensors.h"

namespace colcast::tables {

// The file name of delta number `sequence`.
std::string DeltaName(int64_t sequence);

// The number of consecutive deltas in a folder, starting with the first.
int64_t DeltasIn(const std::string& folder);

// Returns FAILED_PRECONDITION unless the delta was made for the table or checkpoint with this
// checksum. The delta's metadata field `entry` contains the expected checksum.
Status CheckMadeFor(const std::string& checksum, const char* entry, Safetensors* delta);

// Used by one thread.
class PolledFiles {
 public:
  using UseFile = std::function<Status(Safetensors*)>;

  // `format` is the format that every file must declare. Reads end with CANCELLED once `stop`
  // returns true.
  explicit PolledFiles(
      std::string format, std::function<bool()> stop = [] { return false; })
      : format_(std::move(format)), stop_(std::move(stop)) {}

  // Passes a file to `use`. Its data is read when `use` asks for the first tensor. Errors name the
  // file. A refused file is not read again until it is replaced, unless memory was short.
  Status Use(const std::string& path, const FileIdentity& id, const UseFile& use);

  // Passes the deltas in a folder to `use`, in order, starting after the first `applied` ones and
  // stopping at the first that is missing or refused. Each file must contain its own number.
  Status UseDeltas(const std::string& folder, int64_t applied, const UseFile& use);

 private:
  const std::string format_;
  const std::function<bool()> stop_;
  std::map<std::string, std::pair<FileIdentity, Status>> refused_;  // by path
};

// All methods may be called from any thread, but not from a polled function.
class PollThread {
 public:
  // The poller shared by all users of this library. It exists while any user holds it.
  static std::shared_ptr<PollThread> Shared();

  PollThread() = default;
  ~PollThread();

  // Destroying a job stops its calls and waits for one in progress. The poller must outlive jobs.
  using Job = std::unique_ptr<void, std::function<void(void*)>>;

  // Calls `poll` every `wait`, until `*job` is destroyed. Returns RESOURCE_EXHAUSTED if the thread
  // cannot be started.
  Status Add(std::chrono::milliseconds wait, std::function<void()> poll, Job* job);

  // Makes the thread call all functions now, without waiting for them to return.
  void PollNow();

 private:
  using Clock = std::chrono::steady_clock;
  struct Polled {
    Clock::duration wait;
    std::function<void()> poll;
    Clock::time_point next;
  };

  void Run();
  void Remove(const Polled* polled);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Polled> polled_ ABSL_GUARDED_BY(mutex_);
  const Polled* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_POLLED_FILES_H_
