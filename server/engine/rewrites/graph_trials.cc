#include "server/engine/rewrites/graph_trials.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int64_t kUnknownSize = 3;
constexpr int64_t kOtherRows = 4;
constexpr int64_t kFewRows = 20;
constexpr int64_t kMostBytes = int64_t{64} << 20;  // of feeds
constexpr int64_t kValues[] = {50, kOtherRows, 1};
constexpr int64_t kBeyond = 2;    // rows of a request with ids that are no rows
constexpr int kRunsOfATrial = 2;  // by each graph, before it is measured

// The rows of `values`, each row `width` elements, taken again from the first one after the last.
template <typename T>
void RepeatRows(const Tensor& values, int64_t width, Tensor* repeated) {
  const T* const from = static_cast<const T*>(values.data());
  T* const to = static_cast<T*>(repeated->data());
  const int64_t have = values.NumElements();
  for (int64_t i = 0; i < repeated->dim_size(0) * width; ++i) to[i] = from[i % have];
}

Tensor RowsOf(const Tensor& values, int64_t rows) {
  TensorShape shape = values.shape();
  shape.set_dim(0, rows);
  Tensor repeated(values.dtype(), shape);
  if (repeated.NumElements() == 0) return repeated;
  const int64_t width = shape.num_elements() / rows;
  if (values.dtype() == tensorflow::DT_STRING) {
    RepeatRows<tensorflow::tstring>(values, width, &repeated);
    return repeated;
  }
  const size_t row_bytes = repeated.TotalBytes() / rows;
  char* const to = static_cast<char*>(repeated.data());
  const char* const from = static_cast<const char*>(values.data());
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i % values.dim_size(0) * row_bytes, row_bytes, to + i * row_bytes);
  }
  return repeated;
}

// Numbers that a feature might have.
class Draws {
 public:
  int64_t Below(int64_t end) { return static_cast<int64_t>(random_() % end); }
  // As Below(), but the largest one after a Begin().
  int64_t Id(int64_t end) { return std::exchange(is_first_, false) ? end - 1 : Below(end); }
  void Begin() { is_first_ = true; }
  double Fraction() { return static_cast<double>(Below(4001) - 2000) / 1e3; }

 private:
  std::mt19937_64 random_{7};
  bool is_first_ = false;
};

// Fills a tensor of one type; whole numbers are below `end`.
using Fill = void (*)(Draws* draws, int64_t end, Tensor* tensor);

template <typename T, typename Value>
void FillWith(Tensor* tensor, const Value& value) {
  auto flat = tensor->flat<T>();
  for (int64_t i = 0; i < flat.size(); ++i) flat(i) = value();
}

template <typename T>
void FillWhole(Draws* draws, int64_t end, Tensor* tensor) {
  // What is beyond the type has the largest of it, not another number.
  const auto most = static_cast<uint64_t>(std::numeric_limits<T>::max());
  const auto fit = std::min(static_cast<uint64_t>(end), most);
  FillWith<T>(tensor, [&] { return static_cast<T>(draws->Id(static_cast<int64_t>(fit))); });
}

template <typename T>
void FillFractions(Draws* draws, int64_t, Tensor* tensor) {
  FillWith<T>(tensor, [&] { return static_cast<T>(draws->Fraction()); });
}

void FillText(Draws* draws, int64_t end, Tensor* tensor) {
  FillWith<tensorflow::tstring>(tensor, [&] { return std::to_string(draws->Id(end)); });
}

void FillBools(Draws* draws, int64_t, Tensor* tensor) {
  FillWith<bool>(tensor, [&] { return draws->Below(2) == 1; });
}

// Null for a type of which no values can be made up.
Fill FillOf(DataType dtype) {
  static constexpr std::pair<DataType, Fill> kFills[] = {
      {tensorflow::DT_STRING, FillText},
      {tensorflow::DT_BOOL, FillBools},
      {tensorflow::DT_INT8, FillWhole<int8_t>},
      {tensorflow::DT_INT16, FillWhole<int16_t>},
      {tensorflow::DT_INT32, FillWhole<int32_t>},
      {tensorflow::DT_INT64, FillWhole<int64_t>},
      {tensorflow::DT_UINT8, FillWhole<uint8_t>},
      {tensorflow::DT_UINT16, FillWhole<uint16_t>},
      {tensorflow::DT_UINT32, FillWhole<uint32_t>},
      {tensorflow::DT_UINT64, FillWhole<uint64_t>},
      {tensorflow::DT_HALF, FillFractions<Eigen::half>},
      {tensorflow::DT_BFLOAT16, FillFractions<tensorflow::bfloat16>},
      {tensorflow::DT_FLOAT, FillFractions<float>},
      {tensorflow::DT_DOUBLE, FillFractions<double>},
  };
  for (const auto& [type, fill] : kFills) {
    if (type == dtype) return fill;
  }
  return nullptr;
}

// Whether its values can be made up, and few rows of it fit into what is.
bool CanBeMade(const DeclaredInput& input) {
  const bool is_text = input.dtype == tensorflow::DT_STRING;
  if (FillOf(input.dtype) == nullptr) return false;
  double bytes = is_text ? sizeof(tensorflow::tstring) : tensorflow::DataTypeSize(input.dtype);
  for (const int64_t dim : input.dims) bytes *= static_cast<double>(dim < 0 ? kFewRows : dim);
  return bytes <= static_cast<double>(kMostBytes);
}

bool HasRows(const DeclaredInput& input, const Tensor& tensor, int64_t rows) {
  return input.batched() && tensor.dims() > 0 && tensor.dim_size(0) == rows;
}

// Fills a tensor with values that a feature might have.
class Generator {
 public:
  Generator(int64_t values, const Ends& ends) : values_(values), ends_(ends) {}

  Tensor Make(const DeclaredInput& input, int64_t rows) {
    TensorShape shape;
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const int64_t unknown = i > 0 ? kUnknownSize : input.other_domain ? kOtherRows : rows;
      shape.AddDim(input.dims[i] < 0 ? unknown : input.dims[i]);
    }
    if (input.unknown_rank) shape.AddDim(rows);
    Tensor tensor(input.dtype, shape);
    const bool is_length = absl::EndsWith(input.alias, "/length");
    const auto found = ends_.find(input.alias);
    const int64_t end = is_length              ? std::min(values_, kUnknownSize + 1)
                        : found == ends_.end() ? values_
                                               : found->second;
    draws_.Begin();
    if (const Fill fill = FillOf(input.dtype); fill != nullptr) fill(&draws_, end, &tensor);
    return tensor;
  }

 private:
  const int64_t values_;
  const Ends& ends_;
  Draws draws_;
};

class Runner {
 public:
  Runner(absl::Span<const DeclaredInput> inputs, const std::vector<TrialFeeds>& recorded,
         const GraphRun& original, const TrialLimits& limits, const WorkClock& clock)
      : inputs_(inputs),
        recorded_(recorded),
        original_(original),
        limits_(limits),
        clock_(clock),
        end_(clock() + limits.seconds),
        most_rows_(limits.rows.back()) {}

  Trials Run() {
    const auto unfit = std::find_if_not(inputs_.begin(), inputs_.end(), CanBeMade);
    if (unfit != inputs_.end()) {
      trials_.why_none = "no values can be made for input \"" + unfit->alias + "\"";
      return std::move(trials_);
    }
    if (!TryIds()) TrySmallValues();
    for (const TrialFeeds& feeds : recorded_) Try(feeds, true);
    for (const int64_t rows : limits_.rows) {
      if (rows > most_rows_ || !HasTimeFor(rows)) break;
      if (!generated_.tensors.empty()) Try(WithRows(inputs_, generated_, rows), false);
      if (!recorded_.empty()) Try(WithRows(inputs_, recorded_.front(), rows), true);
    }
    std::stable_sort(trials_.answered.begin(), trials_.answered.end(),
                     [](const Trial& a, const Trial& b) { return a.feeds.rows < b.feeds.rows; });
    return std::move(trials_);
  }

 private:
  // Ids of all rows; of the smallest table that an input leads to, where those are refused.
  bool TryIds() {
    for (int64_t IdRange::*const rows : {&IdRange::most, &IdRange::least}) {
      Ends ends;
      for (const auto& [alias, range] : limits_.ids) ends[alias] = range.*rows;
      if (ends.empty() || !TryGenerated(kValues[0], ends)) continue;
      for (auto& [alias, end] : ends) ++end;
      TryBeyond(GenerateFeeds(inputs_, kBeyond, kValues[0], ends));
      return true;
    }
    return false;
  }

  void TrySmallValues() {
    for (const int64_t values : kValues) {
      if (TryGenerated(values, {})) return;
    }
  }

  // Whether such values are answered, which more rows have then, too.
  bool TryGenerated(int64_t values, const Ends& ends) {
    const TrialFeeds few = GenerateFeeds(inputs_, kFewRows, values, ends);
    most_rows_ = std::min(most_rows_, kMostBytes / BytesInRow(few));
    if (!Try(few, false)) return false;
    generated_ = GenerateFeeds(inputs_, most_rows_, values, ends);
    return true;
  }

  void TryBeyond(TrialFeeds feeds) {
    Tensors outputs;
    double seconds = 0;
    if (!HasTimeFor(feeds.rows)) return;
    const absl::Status status = Run(feeds, &outputs, &seconds);
    if (!status.ok()) trials_.refused.push_back({std::move(feeds), status.code()});
  }

  static int64_t BytesInRow(const TrialFeeds& feeds) {
    size_t bytes = 1;
    for (const Tensor& tensor : feeds.tensors) bytes += tensor.TotalBytes();
    return static_cast<int64_t>(bytes) / feeds.rows + 1;
  }

  // Whether all graphs may run so many rows, judged by the last trial.
  bool HasTimeFor(int64_t rows) {
    const double more = std::max(1.0, static_cast<double>(rows) / static_cast<double>(last_rows_));
    const double wanted = last_seconds_ * more * limits_.graphs * kRunsOfATrial;
    if (wanted <= end_ - clock_()) return true;
    trials_.lacked_time = true;
    return false;
  }

  absl::Status Run(const TrialFeeds& feeds, Tensors* outputs, double* seconds) const {
    const double start = clock_();
    absl::Status status = original_(feeds.tensors, outputs);
    *seconds = clock_() - start;
    return status;
  }

  bool Try(TrialFeeds feeds, bool recorded) {
    if (!HasTimeFor(feeds.rows)) return false;
    Trial trial;
    double seconds = 0;
    absl::Status status = Run(feeds, &trial.outputs, &seconds);
    if (!ran_ && status.ok()) {
      // The first run does work that later ones find done.
      ran_ = true;
      if (clock_() + seconds > end_) {
        trials_.lacked_time = true;
        trials_.why_none = absl::StrFormat("a run of %d rows takes %.3g s", feeds.rows, seconds);
        return false;
      }
      trial.outputs.clear();
      status = Run(feeds, &trial.outputs, &seconds);
    }
    trial.seconds = seconds;
    if (ran_) last_seconds_ = seconds;
    last_rows_ = std::max<int64_t>(1, feeds.rows);
    if (!status.ok()) {
      trials_.why_none = std::string(status.message());
      return false;
    }
    trial.feeds = std::move(feeds);
    trial.recorded = recorded;
    trials_.answered.push_back(std::move(trial));
    return true;
  }

  const absl::Span<const DeclaredInput> inputs_;
  const std::vector<TrialFeeds>& recorded_;
  const GraphRun& original_;
  const TrialLimits& limits_;
  const WorkClock& clock_;
  const double end_;
  int64_t most_rows_;
  TrialFeeds generated_;
  bool ran_ = false;
  double last_seconds_ = 0;
  int64_t last_rows_ = 1;
  Trials trials_;
};

}  // namespace

WorkClock WorkClockOf(bool on_callers_thread) {
  if (!on_callers_thread) {
    return [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
  }
  return [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
}

TrialFeeds WithRows(absl::Span<const DeclaredInput> inputs, const TrialFeeds& feeds, int64_t rows) {
  TrialFeeds changed{rows, feeds.tensors};
  if (feeds.rows == 0) return feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& tensor = changed.tensors[i];
    if (HasRows(inputs[i], tensor, feeds.rows)) tensor = RowsOf(tensor, rows);
  }
  return changed;
}

TrialFeeds GenerateFeeds(absl::Span<const DeclaredInput> inputs, int64_t rows, int64_t values,
                         const Ends& ends) {
  Generator generator(values, ends);
  TrialFeeds feeds{rows, {}};
  for (const DeclaredInput& input : inputs) feeds.tensors.push_back(generator.Make(input, rows));
  return feeds;
}

Trials RunTrials(absl::Span<const DeclaredInput> inputs, const std::vector<TrialFeeds>& recorded,
                 const GraphRun& original, const TrialLimits& limits, const WorkClock& clock) {
  return Runner(inputs, recorded, original, limits, clock).Run();
}

}  // namespace colcast::engine
