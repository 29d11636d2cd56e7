// Measures decoding alone: 210 columns of int64, float and string in turn, 150 of them sent once
// (the user) and 60 with N rows, in one slice and in slices of 8 KB as from gRPC; and one
// tensor_content of 2 MB.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/column.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

constexpr int kUserColumns = 150;
constexpr int kItemColumns = 60;
constexpr size_t kSliceSize = 8192;

std::string Tensor(DataType dtype, int64_t rows, const std::string& values) {
  return VarintField(1, dtype) + BytesField(2, BytesField(2, VarintField(1, rows))) + values;
}

std::string WideTensor(int column, int64_t rows) {
  std::vector<uint64_t> ints;
  std::vector<float> floats;
  std::string strings;
  for (int64_t row = 0; row < rows; ++row) {
    ints.push_back((row * 2654435761u + column) % 1000000);
    floats.push_back(0.25f * row + column);
    strings += BytesField(8, "category_" + std::to_string((row * 31 + column) % 1000));
  }
  switch (column % 3) {
    case 0:
      return Tensor(DT_INT64, rows, BytesField(10, Varints(ints)));
    case 1:
      return Tensor(DT_FLOAT, rows, BytesField(5, Raw(floats)));
    default:
      return Tensor(DT_STRING, rows, strings);
  }
}

std::string WideRequest(int64_t rows) {
  std::string message = BytesField(1, BytesField(1, "wide") + BytesField(3, "columnar"));
  for (int i = 0; i < kUserColumns + kItemColumns; ++i) {
    const bool user = i < kUserColumns;
    const std::string name = (user ? "user_feature_" : "item_feature_") + std::to_string(i);
    message += BytesField(2, BytesField(1, name) + BytesField(2, WideTensor(i, user ? 1 : rows)));
  }
  return message;
}

std::vector<size_t> CutsEvery(size_t slice_size, size_t size) {
  std::vector<size_t> cuts;
  for (size_t cut = slice_size; cut < size; cut += slice_size) cuts.push_back(cut);
  return cuts;
}

class LengthSum final : public StringVisitor {
 public:
  void Set(int64_t, const Bytes& value) override { sum += value.size(); }
  size_t sum = 0;
};

// Reads all values of `request` into `buffer`, which is large enough for each column.
void ReadValues(const DecodedRequest& request, std::vector<uint64_t>* buffer) {
  LengthSum strings;
  for (const Column& column : request.columns()) {
    int64_t count = 0;
    bool ok = ElementCount(column, &count).ok();
    if (column.dtype == DT_STRING) {
      ok = ok && VisitStrings(column, count, &strings).ok();
    } else {
      ok = ok && CopyValues(column, count, buffer->data()).ok();
    }
    if (!ok) std::abort();
  }
  benchmark::DoNotOptimize(strings.sum);
  benchmark::DoNotOptimize(buffer->data());
}

void RowCounts(benchmark::internal::Benchmark* benchmark) {
  for (const int rows : {1, 20, 100, 500}) benchmark->ArgName("N")->Arg(rows);
  benchmark->Unit(benchmark::kMicrosecond);
}

// Decodes names, dtypes and shapes, and views of the values, but not the values.
void BM_DecodeWide(benchmark::State& state) {
  const std::string message = WideRequest(state.range(0));
  DecodedRequest request;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DecodePredictRequest(Bytes(message), &request).ok());
  }
  state.SetBytesProcessed(state.iterations() * message.size());
}
BENCHMARK(BM_DecodeWide)->Apply(RowCounts);

// Decodes the columns and reads all their values.
void BM_ReadWide(benchmark::State& state, size_t slice_size) {
  const std::string message = WideRequest(state.range(0));
  const SlicedBytes sliced(message, CutsEvery(slice_size, message.size()));
  std::vector<uint64_t> buffer(state.range(0));
  DecodedRequest request;
  for (auto _ : state) {
    if (!DecodePredictRequest(sliced.bytes(), &request).ok()) std::abort();
    ReadValues(request, &buffer);
  }
  state.SetBytesProcessed(state.iterations() * message.size());
}
BENCHMARK_CAPTURE(BM_ReadWide, whole, SIZE_MAX)->Apply(RowCounts);
BENCHMARK_CAPTURE(BM_ReadWide, slices, kSliceSize)->Apply(RowCounts);

void BM_ReadTensorContent(benchmark::State& state) {
  const int64_t rows = state.range(0) / sizeof(float);
  const std::string tensor =
      Tensor(DT_FLOAT, rows, BytesField(4, std::string(state.range(0), 'x')));
  const std::string message = BytesField(2, BytesField(1, "image") + BytesField(2, tensor));
  const SlicedBytes sliced(message, CutsEvery(kSliceSize, message.size()));
  std::vector<uint64_t> buffer(rows);
  DecodedRequest request;
  for (auto _ : state) {
    if (!DecodePredictRequest(sliced.bytes(), &request).ok()) std::abort();
    ReadValues(request, &buffer);
  }
  state.SetBytesProcessed(state.iterations() * message.size());
}
BENCHMARK(BM_ReadTensorContent)->ArgName("bytes")->Arg(2 << 20)->Unit(benchmark::kMicrosecond);

void BM_WriteScores(benchmark::State& state) {
  const std::vector<float> scores(state.range(0), 0.5f);
  const std::vector<int64_t> dims = {state.range(0), 1};
  const OutputColumn output = {"score", DT_FLOAT, dims, scores.data(), nullptr};
  PredictResponse response;
  response.model_name = "wide";
  response.signature_name = "columnar";
  response.version = 1;
  response.outputs = Span<OutputColumn>(&output, 1);
  std::string out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(WritePredictResponse(response, MakeString(&out)).ok());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_WriteScores)->ArgName("N")->Arg(500);

}  // namespace
}  // namespace colcast
