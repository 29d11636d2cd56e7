#include "server/engine/rewrites/lookup_tables.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/session_resources.h"
#include "tensorflow/core/util/util.h"

namespace colcast::engine {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;
using tensorflow::core::RefCountPtr;

absl::Status ReadInt8(const Tensor& input, const Int8Tables& tables, LookupTable* table) {
  auto found = tables.Find(input.scalar<tensorflow::ResourceHandle>()().name());
  if (!found.ok()) return found.status();
  table->int8 = *std::move(found);
  table->changed = tables::ReadsGeneration::Of(table->int8->values());
  return absl::OkStatus();
}

float ScaleOf(const char* row) {
  uint16_t half;
  std::memcpy(&half, row, sizeof(half));
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return scale;
}

// Some rows of a table, beginning at one of its columns.
struct Rows {
  const char* first_column;  // the column's address in row 0 of the table
  const char* table;
  size_t row_bytes;
  absl::Span<const int64_t> ids;
};

void SumAny(const Rows& rows, int64_t columns, float* sums) {
  std::fill_n(sums, columns, 0.0f);
  for (const int64_t id : rows.ids) {
    const float scale = ScaleOf(rows.table + id * rows.row_bytes);
    const char* const values = rows.first_column + id * rows.row_bytes;
    for (int64_t i = 0; i < columns; ++i) {
      sums[i] += scale * static_cast<float>(static_cast<int8_t>(values[i]));
    }
  }
}

#ifdef __x86_64__
// Enable newer instructions for individual functions, because the engine must run on every CPU that
// TensorFlow's wheel supports.
#define COLCAST_AVX2 __attribute__((target("avx2,fma")))
#define COLCAST_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

// The mask of all lanes. GCC warns about uninitialized values in instructions without a mask.
constexpr __mmask16 kAll = 0xffff;

COLCAST_AVX2 void SumAvx2(const Rows& rows, float* sums) {
  __m256 sum = _mm256_setzero_ps();
  for (const int64_t id : rows.ids) {
    const __m256 scale = _mm256_set1_ps(ScaleOf(rows.table + id * rows.row_bytes));
    const __m128i values =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows.first_column + id * rows.row_bytes));
    sum = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(values)), sum);
  }
  _mm256_storeu_ps(sums, sum);
}

template <int kVectors>
COLCAST_AVX512 void SumAvx512(const Rows& rows, float* sums) {
  __m512 sum[kVectors];
  for (__m512& one : sum) one = _mm512_setzero_ps();
  for (const int64_t id : rows.ids) {
    const __m512 scale = _mm512_set1_ps(ScaleOf(rows.table + id * rows.row_bytes));
    const char* const row = rows.first_column + id * rows.row_bytes;
    for (int v = 0; v < kVectors; ++v) {
      const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + v * 16));
      const __m512 floats =
          _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepi8_epi32(kAll, values));
      sum[v] = _mm512_fmadd_ps(scale, floats, sum[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + 16 * v, sum[v]);
}
#endif

// Sums whole rows; `rows` begins at the table's first byte.
void SumWith([[maybe_unused]] Instructions instructions, Rows rows, int64_t width, float* sums) {
  rows.first_column += Int8Rows::kScaleBytes;
  int64_t column = 0;
#ifdef __x86_64__
  const auto take = [&](auto sum, int64_t columns) {
    for (; column + columns <= width; column += columns) {
      sum(rows, sums + column);
      rows.first_column += columns;
    }
  };
  if (instructions == Instructions::kAvx512) {
    take(SumAvx512<4>, 64);
    take(SumAvx512<2>, 32);
    take(SumAvx512<1>, 16);
  }
  if (instructions != Instructions::kAny) take(SumAvx2, 8);
#endif
  if (column < width) SumAny(rows, width - column, sums + column);
}

}  // namespace

TableVariables::~TableVariables() {
  for (const std::atomic<Known*>& known : known_) delete known.load(std::memory_order_relaxed);
}

absl::Status TableVariables::Read(OpKernelContext* context, int table, const Tensor& input,
                                  Tensor* values) {
  if (input.dtype() != tensorflow::DT_RESOURCE) {
    *values = input;
    return absl::OkStatus();
  }
  RefCountPtr<Var> variable;
  if (absl::Status status = Find(context, table, input, &variable); !status.ok()) return status;
  const tensorflow::tf_shared_lock lock(*variable->mu());
  *values = *variable->tensor();
  return absl::OkStatus();
}

absl::Status TableVariables::Find(OpKernelContext* context, int table, const Tensor& handle,
                                  RefCountPtr<Var>* variable) {
  Known* known = known_[table].load(std::memory_order_acquire);
  // VarHandleOp returns the same tensor in every run, and while it is held here nothing can write
  // to it.
  if (known != nullptr && known->handle.data() == handle.data()) {
    *variable = known->variable.GetNewRef();
    if (*variable != nullptr) return absl::OkStatus();
  }
  absl::Status status =
      LookupResource(context, handle.scalar<tensorflow::ResourceHandle>()(), variable);
  if (!status.ok() || known != nullptr) return status;
  auto found =
      std::make_unique<Known>(Known{handle, tensorflow::core::WeakPtr<Var>(variable->get())});
  const bool is_first =
      known_[table].compare_exchange_strong(known, found.get(), std::memory_order_acq_rel);
  if (is_first) found.release();
  return absl::OkStatus();
}

absl::Status CheckIds(absl::Span<const int64_t> ids, int64_t rows,
                      const tensorflow::TensorShape& shape, int64_t first, std::string_view node) {
  const auto* const bad = std::find_if(ids.begin(), ids.end(), [rows](int64_t id) {
    return static_cast<uint64_t>(id) >= static_cast<uint64_t>(rows);
  });
  if (bad == ids.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("indices", tensorflow::SliceDebugString(shape, first + (bad - ids.begin())),
                   " = ", *bad, " is not in [0, ", rows, ")\n\t [[{{node ", node, "}}]]"));
}

absl::Status ReadLookupTables(OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> int8, TableVariables* variables,
                              std::vector<LookupTable>* tables) {
  tensorflow::OpInputList inputs;
  if (absl::Status status = context->input_list("tables", &inputs); !status.ok()) return status;
  tables->resize(inputs.size());
  RefCountPtr<Int8Tables> forms;
  if (!int8.empty()) {
    auto found = Int8Tables::In(context->resource_manager());
    if (!found.ok()) return found.status();
    forms = *std::move(found);
  }
  for (int i = 0; i < inputs.size(); ++i) {
    LookupTable& table = (*tables)[i];
    if (std::find(int8.begin(), int8.end(), i) != int8.end()) {
      if (absl::Status status = ReadInt8(inputs[i], *forms, &table); !status.ok()) return status;
      continue;
    }
    absl::Status status = variables->Read(context, i, inputs[i], &table.values);
    if (!status.ok()) return status;
    if (table.values.dims() != 2 || table.values.dtype() != type) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table ", i, " of ", context->op_kernel().name(), " is ", table.values.DebugString(0),
          "; a matrix of ", DataTypeString(type), " was expected"));
    }
    table.changed = tables::ReadsGeneration::Of(table.values.data());
  }
  return absl::OkStatus();
}

Instructions WidestInstructions() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Instructions::kAny;
  const bool is_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return is_512 ? Instructions::kAvx512 : Instructions::kAvx2;
#else
  return Instructions::kAny;  // the compiler vectorizes SumAny() for NEON
#endif
}

Int8Table::Int8Table(const float* values, int64_t rows, int64_t width, Int8Rows packed,
                     Instructions instructions)
    : values_(values),
      rows_(rows),
      width_(width),
      instructions_(instructions),
      packed_(std::move(packed)),
      row_bytes_(Int8Rows::kScaleBytes + width) {}

bool Int8Table::IsComplete() const {
  for (int64_t id = 0; id < rows_; ++id) {
    if (IsKept(id) != (packed_.kept.count(id) > 0)) return false;
  }
  return true;
}

void Int8Table::Gather(absl::Span<const int64_t> ids, OutputRows output) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kIdsAhead < ids.size()) Prefetch(ids.subspan(i + kIdsAhead, 1));
    SumOne(ids.subspan(i, 1), reinterpret_cast<float*>(output.begin + i * output.stride));
  }
}

void Int8Table::Sum(absl::Span<const int64_t> ids, int64_t rows, OutputRows output) const {
  if (rows == 0) return;
  const size_t count = ids.size() / rows;
  if (count == 1) return Gather(ids, output);
  for (int64_t i = 0; i < rows; ++i) {
    Prefetch(ids.subspan((i + 1) * count, count));
    SumOne(ids.subspan(i * count, count),
           reinterpret_cast<float*>(output.begin + i * output.stride));
  }
}

void Int8Table::SumOne(absl::Span<const int64_t> ids, float* sums) const {
  const bool has_kept = !packed_.kept.empty();
  const auto is_float = [&](int64_t id) { return IsChanged(id) || (has_kept && IsKept(id)); };
  if (std::any_of(ids.begin(), ids.end(), is_float)) return SumWithFloats(ids, sums);
  SumWith(instructions_, {packed(), packed(), row_bytes_, ids}, width_, sums);
}

void Int8Table::SumWithFloats(absl::Span<const int64_t> ids, float* sums) const {
  // A sum of one row must equal that row, including -0.
  std::fill_n(sums, width_, ids.size() == 1 ? -0.0f : 0.0f);
  std::vector<float> row(width_);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!CopyFloats(ids[i], row.data())) SumOne(ids.subspan(i, 1), row.data());
    for (int64_t column = 0; column < width_; ++column) sums[column] += row[column];
  }
}

bool Int8Table::IsKept(int64_t id) const { return std::isnan(ScaleOf(packed() + id * row_bytes_)); }

bool Int8Table::CopyFloats(int64_t id, float* row) const {
  const size_t bytes = width_ * sizeof(float);
  if (IsChanged(id)) {  // the id locates floats relative to values_
    std::memcpy(row, reinterpret_cast<const char*>(values_) + id * static_cast<int64_t>(bytes),
                bytes);
    return true;
  }
  if (!IsKept(id)) return false;
  const auto kept = packed_.kept.find(id);
  // The row is missing if the file was changed after it was checked; the run then fails.
  if (kept != packed_.kept.end()) std::memcpy(row, kept->second.data(), bytes);
  return true;
}

void Int8Table::Prefetch(absl::Span<const int64_t> ids) const {
  for (const int64_t id : ids) {
    PrefetchRow(packed() + id * row_bytes_, row_bytes_);
  }
}

absl::StatusOr<RefCountPtr<Int8Tables>> Int8Tables::In(tensorflow::ResourceMgr* resources) {
  return FindOrMakeResource<Int8Tables>(resources, "colcast_int8_tables");
}

absl::StatusOr<std::shared_ptr<const Int8Table>> Int8Tables::Find(
    const std::string& variable) const {
  const std::shared_lock lock(mutex_);
  const auto found = tables_.find(variable);
  if (found != tables_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("table ", variable, " is not in int8"));
}

void Int8Tables::Add(const std::string& variable, std::shared_ptr<const Int8Table> table) {
  const std::unique_lock lock(mutex_);
  tables_[variable] = std::move(table);
}

void Int8Tables::Remove(const std::string& variable) {
  const std::unique_lock lock(mutex_);
  tables_.erase(variable);
}

}  // namespace colcast::engine
