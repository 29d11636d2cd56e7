// Makes a signature's callables, runs them, and presents their outputs.
#include <algorithm>
#include <cfenv>
#include <numeric>
#include <string_view>
#include <utility>

#include "server/engine/rows.h"
#include "server/engine/signature.h"
#include "server/tables/overlay.h"
#include "tensorflow/core/platform/tstring.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tf_patches/repeat_row.h"
#include "tsl/platform/denormal.h"
#include "tsl/platform/setround.h"
#include "tsl/platform/threadpool.h"
#include "tsl/platform/threadpool_options.h"

namespace colcast::engine {
namespace {

using tensorflow::Session;
using tensorflow::Tensor;

// A value of RunOptions.inter_op_thread_pool that makes a run use the caller's thread.
constexpr int kCallerThread = -1;

std::vector<int> FirstNumbers(size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Runs operations on the threads of `pool` or, if it is null, on the threads that schedule them.
// Either way, they read the same tables as the thread that started the run.
class RunThreads final : public tsl::thread::ThreadPoolInterface {
 public:
  explicit RunThreads(tsl::thread::ThreadPool* pool) : pool_(pool) {}

  void Schedule(std::function<void()> work) override {
    auto run = [tables = tables_, work = std::move(work)] {
      const tables::ReadsGeneration reads(tables);
      work();
    };
    pool_ == nullptr ? run() : pool_->Schedule(std::move(run));
  }
  int NumThreads() const override { return pool_ == nullptr ? 1 : pool_->NumThreads(); }
  int CurrentThreadId() const override { return pool_ == nullptr ? 0 : pool_->CurrentThreadId(); }

 private:
  tsl::thread::ThreadPool* const pool_;
  const tables::GenerationPtr tables_ = tables::ReadsGeneration::Here();
};

}  // namespace

class Callables::Callable {
 public:
  Callable(Session* session, std::vector<int> outputs)
      : outputs(std::move(outputs)), session_(session) {}
  Callable(const Callable&) = delete;
  ~Callable() {
    if (is_made) session_->ReleaseCallable(handle).IgnoreError();
  }

  const std::vector<int> outputs;

  // Held while the callable is made. The members below do not change after that.
  std::mutex mutex;
  std::atomic<bool> is_made{false};
  Session::CallableHandle handle = 0;
  std::vector<int> fetches;  // outputs[i] is the fetched tensor fetches[i]

 private:
  Session* const session_;
};

Callables::Callables(std::vector<std::string> feeds, std::vector<std::string> fetches,
                     Session* session, int inter_op_parallelism)
    : feeds_(std::move(feeds)),
      fetches_(std::move(fetches)),
      session_(session),
      inter_op_parallelism_(inter_op_parallelism),
      all_(std::make_unique<Callable>(session, FirstNumbers(fetches_.size()))),
      mapped_(MappedTables::Of(session)) {}

Callables::~Callables() = default;

absl::Status Callables::Prepare(const std::vector<int>& outputs) {
  return Make(FindOrAdd(outputs));
}

absl::Status Callables::Run(const std::vector<Tensor>& feeds, const std::vector<int>& outputs,
                            std::vector<Tensor>* tensors) {
  Callable* const callable = FindOrAdd(outputs);
  if (absl::Status status = Make(callable); !status.ok()) return status;
  std::vector<Tensor> fetched;
  {
    // TensorFlow's own pool threads use the same settings.
    const tsl::port::ScopedFlushDenormal flush;
    const tsl::port::ScopedSetRound round(FE_TONEAREST);
    absl::Status status;
    if (mapped_ == nullptr) {
      status = session_->RunCallable(callable->handle, feeds, &fetched, nullptr);
    } else {
      RunThreads threads(Pool());
      tsl::thread::ThreadPoolOptions pools;
      pools.inter_op_threadpool = &threads;
      status = session_->RunCallable(callable->handle, feeds, &fetched, nullptr, pools);
      if (status.ok()) status = mapped_->Check();
    }
    if (!status.ok()) return status;
  }
  tensors->clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t place = callable == all_.get() ? outputs[i] : i;
    tensors->push_back(fetched[callable->fetches[place]]);
  }
  return absl::OkStatus();
}

// Returns null if operations run on the caller's thread.
tsl::thread::ThreadPool* Callables::Pool() const {
  if (inter_op_parallelism_ == 0) return nullptr;
  static auto* const pool =
      new tsl::thread::ThreadPool(tsl::Env::Default(), "inter_op", inter_op_parallelism_);
  return pool;
}

Callables::Callable* Callables::FindOrAdd(const std::vector<int>& outputs) {
  if (outputs.size() == fetches_.size()) return all_.get();
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = some_.find(outputs);
    if (found != some_.end()) return found->second.get();
    if (some_.size() == kMost) return all_.get();
  }
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (some_.size() == kMost && some_.count(outputs) == 0) return all_.get();
  std::unique_ptr<Callable>& callable = some_[outputs];
  if (callable == nullptr) callable = std::make_unique<Callable>(session_, outputs);
  return callable.get();
}

absl::Status Callables::Make(Callable* callable) const {
  if (callable->is_made.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(callable->mutex);
  if (callable->is_made.load(std::memory_order_relaxed)) return absl::OkStatus();
  tensorflow::CallableOptions options;
  for (const std::string& feed : feeds_) options.add_feed(feed);
  callable->fetches.clear();
  for (const int output : callable->outputs) {
    const std::string& tensor = fetches_[output];
    const auto& fetches = options.fetch();
    const int position = std::find(fetches.begin(), fetches.end(), tensor) - fetches.begin();
    if (position == fetches.size()) options.add_fetch(tensor);
    callable->fetches.push_back(position);
  }
  if (inter_op_parallelism_ == 0 && mapped_ == nullptr) {
    options.mutable_run_options()->set_inter_op_thread_pool(kCallerThread);
  }
  absl::Status status = session_->MakeCallable(options, &callable->handle);
  callable->is_made.store(status.ok(), std::memory_order_release);
  return status;
}

namespace {

using tensorflow::tstring;

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const tstring*>(data)[index];
}

}  // namespace

TensorOutputs::TensorOutputs(RunResult result)
    : result_(std::make_shared<const RunResult>(std::move(result))),
      expansion_(result_->expansion) {
  AddColumns();
}

TensorOutputs::TensorOutputs(std::shared_ptr<const RunResult> result, int64_t first, int64_t rows,
                             const ExpansionStats& expansion)
    : result_(std::move(result)), expansion_(expansion) {
  AddColumns();
  for (size_t i = 0; i < columns_.size(); ++i) {
    dims_[i][0] = rows;
    columns_[i].data =
        static_cast<const char*>(columns_[i].data) +
        first * RowElements(result_->tensors[i]) * ElementBytes(result_->tensors[i].dtype());
  }
}

void TensorOutputs::AddColumns() {
  const size_t count = result_->tensors.size();
  dims_.reserve(count);
  columns_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& tensor = result_->tensors[i];
    const auto dims = tensor.shape().dim_sizes();
    dims_.emplace_back(dims.begin(), dims.end());
    OutputColumn column;
    column.name = result_->aliases[i];
    column.dtype = static_cast<DataType>(tensor.dtype());
    column.dims = dims_.back();
    column.data = tensor.data();
    if (tensor.dtype() == tensorflow::DT_STRING) column.string_at = StringAt;
    columns_.push_back(column);
  }
}

}  // namespace colcast::engine
