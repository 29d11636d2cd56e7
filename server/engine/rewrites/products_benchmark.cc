// What one core multiplies: `rows` x 660 by 660 x 256, with a bias and a Relu, by each way that
// there is, beside the most that its registers allow.
//
// Usage: products_benchmark [ROUNDS]
//   Prints GFLOP/s, a table of Markdown: of each way the best of so many rounds in turn, 50 if it
//   is missing. int8 counts operations on integers, and rounding rows is part of the time.
//   TensorFlow's float32 is a session's, as the server runs it; TF_ENABLE_ONEDNN_OPTS=0 is another
//   way.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server/engine/benchmark_support.h"
#include "server/engine/rewrites/bfloat16_product.h"
#include "server/engine/rewrites/float32_product.h"
#include "server/engine/rewrites/int8_product.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using Floats = std::vector<float>;

constexpr int64_t kDepth = 660;
constexpr int64_t kWidth = 256;
constexpr int64_t kMostRows = 500;
constexpr int64_t kSizes[] = {1, 20, 100, kMostRows};
constexpr int64_t kRowsInATurn = 1000;  // or more

Tensor Random(tensorflow::TensorShape shape, float scale) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal(0, scale);
  Tensor values(tensorflow::DT_FLOAT, shape);
  for (int64_t i = 0; i < values.NumElements(); ++i) values.flat<float>()(i) = normal(random);
  return values;
}

const float* Values(const Tensor& tensor) { return tensor.flat<float>().data(); }

struct Data {
  const Tensor weights = Random({kDepth, kWidth}, 0.04f);
  const Tensor bias = Random({kWidth}, 1);
  const Tensor inputs = Random({kMostRows, kDepth}, 1);
  Floats out = Floats(kMostRows * kWidth);
};

// One way to multiply so many rows.
struct Way {
  std::string name;
  std::function<void(int64_t rows)> run;
};

// As the server runs a graph: one thread, the caller's.
class Session {
 public:
  // Weights are a variable's, as models have them, or a constant.
  Session(const Data& data, bool variable) {
    namespace ops = tensorflow::ops;
    const auto scope = tensorflow::Scope::NewRootScope();
    const auto x = ops::Placeholder(scope.WithOpName("x"), tensorflow::DT_FLOAT);
    const auto handle = ops::VarHandleOp(scope, tensorflow::DT_FLOAT, {kDepth, kWidth});
    const auto constant = ops::Const(scope, tensorflow::Input::Initializer(data.weights));
    ops::AssignVariableOp(scope.WithOpName("init"), handle, constant);
    const auto read = ops::ReadVariableOp(scope, handle, tensorflow::DT_FLOAT);
    const auto product = ops::MatMul(scope, x, variable ? read.value : constant);
    const auto sum = ops::BiasAdd(scope, product, tensorflow::Input(data.bias));
    ops::Relu(scope.WithOpName("y"), sum);
    tensorflow::GraphDef graph;
    TF_CHECK_OK(scope.ToGraphDef(&graph));
    tensorflow::SessionOptions options;
    options.config.set_intra_op_parallelism_threads(1);
    options.config.set_inter_op_parallelism_threads(1);
    options.config.mutable_experimental()->set_executor_type("SINGLE_THREADED_EXECUTOR");
    session_.reset(tensorflow::NewSession(options));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"init"}, nullptr));
    tensorflow::CallableOptions call;
    call.add_feed("x:0");
    call.add_fetch("y:0");
    call.mutable_run_options()->set_inter_op_thread_pool(-1);
    TF_CHECK_OK(session_->MakeCallable(call, &call_));
    for (const int64_t rows : kSizes) inputs_[rows] = data.inputs.Slice(0, rows);
  }

  void Run(int64_t rows) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->RunCallable(call_, {inputs_[rows]}, &outputs, nullptr));
  }

 private:
  std::unique_ptr<tensorflow::Session> session_;
  tensorflow::Session::CallableHandle call_;
  std::map<int64_t, Tensor> inputs_;
};

// By blocks of columns; of a block, which is whole here, row by row.
Floats Packed(const Tensor& weights) {
  Floats packed;
  for (int64_t column = 0; column < kWidth; column += kColumns) {
    for (int64_t row = 0; row < kDepth; ++row) {
      const float* const values = Values(weights) + row * kWidth + column;
      packed.insert(packed.end(), values, values + kColumns);
    }
  }
  return packed;
}

// `column` of the weights begins at weights + column * column_stride.
void MultiplyFloats(Data* data, int64_t rows, const float* weights, int64_t column_stride,
                    int64_t row_stride) {
  static std::vector<RowToMultiply> all;
  const float* const bias = Values(data->bias);
  for (int64_t column = 0; column < kWidth; column += kColumns) {
    all.clear();
    for (int64_t row = 0; row < rows; ++row) {
      all.push_back({Values(data->inputs) + row * kDepth, &data->out[row * kWidth + column]});
    }
    MultiplyFloat32(all, kDepth, weights + column * column_stride, row_stride,
                    ProductBlock(column, kWidth, {bias}), true);
  }
}

std::vector<Way> Ways(Data* data) {
  std::vector<Way> ways;
  for (const bool variable : {true, false}) {
    const auto session = std::make_shared<Session>(*data, variable);
    ways.push_back({variable ? "float32, TensorFlow" : "float32, TensorFlow, of a constant",
                    [=](int64_t rows) { session->Run(rows); }});
  }
  const auto packed = std::make_shared<Floats>(Packed(data->weights));
  if (__builtin_cpu_supports("avx512f")) {
    ways.push_back({"float32, weights as they are", [=](int64_t rows) {
                      MultiplyFloats(data, rows, Values(data->weights), 1, kWidth);
                    }});
    ways.push_back({"float32, packed", [=](int64_t rows) {
                      MultiplyFloats(data, rows, packed->data(), kDepth, kColumns);
                    }});
  }
  const auto add = [&](const char* name, auto weights) {
    ways.push_back({name, [=](int64_t rows) {
                      const float* const bias = Values(data->bias);
                      weights->Multiply(Values(data->inputs), rows, {bias}, true, data->out.data());
                    }});
  };
  const float* const weights = Values(data->weights);
  if (HasBfloat16Products()) {
    add("bfloat16, packed", std::make_shared<Bfloat16Weights>(weights, kDepth, kWidth));
  }
  if (HasInt8Products()) {
    add("int8, packed", std::make_shared<Int8Weights>(weights, kDepth, kWidth));
  }
  return ways;
}

// `loops` times 24 sums that do not depend on each other, as many as a block has. The compiler,
// which knows of no AVX-512 here, uses none of the registers from 16 on.
#define COLCAST_PEAK(name, instruction)                                                         \
  void name(int64_t loops) {                                                                    \
    asm volatile(                                                                               \
        ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,30,31\n"         \
        "vpxord %%zmm\\i, %%zmm\\i, %%zmm\\i\n"                                                 \
        ".endr\n"                                                                               \
        "1:\n"                                                                                  \
        ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n" instruction   \
        " %%zmm30, %%zmm31, %%zmm\\i\n"                                                         \
        ".endr\n"                                                                               \
        "dec %0\n"                                                                              \
        "jnz 1b\n"                                                                              \
        "vzeroupper\n"                                                                          \
        : "+r"(loops)                                                                           \
        :                                                                                       \
        : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
          "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                                \
  }
COLCAST_PEAK(SumFloat32, "vfmadd231ps")
COLCAST_PEAK(SumBfloat16, "vdpbf16ps")
COLCAST_PEAK(SumInt8, "vpdpbusd")

// What is timed: so many operations, and the fewest seconds that they took.
struct Timed {
  std::string name;
  double operations;
  std::function<void()> run;
  double seconds = 1e9;

  double Giga() const { return operations / seconds * 1e-9; }
};

std::vector<Timed> Peaks() {
  constexpr int64_t kLoops = 100'000;
  const auto peak = [](const char* name, int products, void (*sum)(int64_t)) {
    return Timed{name, 2.0 * kLoops * 24 * products, [sum] { sum(kLoops); }};
  };
  std::vector<Timed> peaks;
  if (__builtin_cpu_supports("avx512f")) peaks.push_back(peak("float32", 16, SumFloat32));
  if (HasBfloat16Products()) peaks.push_back(peak("bfloat16", 32, SumBfloat16));
  if (HasInt8Products()) peaks.push_back(peak("int8", 64, SumInt8));
  return peaks;
}

std::vector<Timed> Products(const std::vector<Way>& ways) {
  std::vector<Timed> timed;
  for (const Way& way : ways) {
    for (const int64_t rows : kSizes) {
      const int64_t calls = (kRowsInATurn + rows - 1) / rows;
      timed.push_back({way.name, 2.0 * calls * rows * kDepth * kWidth, [&way, rows, calls] {
                         for (int64_t i = 0; i < calls; ++i) way.run(rows);
                       }});
    }
  }
  return timed;
}

void Time(Timed* timed) {
  const double start = CpuSeconds();
  timed->run();
  timed->seconds = std::min(timed->seconds, CpuSeconds() - start);
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
  if (argc > 2 || rounds < 1) Die("usage: products_benchmark [ROUNDS]");
  Data data;
  const std::vector<Way> ways = Ways(&data);
  std::vector<Timed> peaks = Peaks(), products = Products(ways);
  for (int round = 0; round < rounds; ++round) {
    for (Timed& one : peaks) Time(&one);
    for (Timed& one : products) Time(&one);
  }
  for (const Timed& one : peaks) std::printf("%s: at most %.0f\n", one.name.c_str(), one.Giga());
  std::printf("\n| way |");
  for (const int64_t rows : kSizes) std::printf(" N = %ld |", rows);
  std::printf("\n| --- |");
  for (size_t i = 0; i < std::size(kSizes); ++i) std::printf(" ---: |");
  for (size_t i = 0; i < products.size(); ++i) {
    if (i % std::size(kSizes) == 0) std::printf("\n| %s |", products[i].name.c_str());
    std::printf(" %.0f |", products[i].Giga());
  }
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace colcast::engine

int main(int argc, char** argv) { return colcast::engine::Main(argc, argv); }
