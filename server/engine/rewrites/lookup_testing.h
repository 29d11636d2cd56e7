// A graph of two lookups in one table, for the tests of this folder.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TESTING_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/rewrites/lookup_tables.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/testing.h"
#include "server/engine/session_resources.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

namespace ops = tensorflow::ops;
using tensorflow::GraphDef;
using tensorflow::SignatureDef;
using tensorflow::Tensor;

inline constexpr int kRows = 20'000;
inline constexpr int kWidth = 24;

// Rounds a row-major matrix. Rows with NaN or infinity keep their floats.
inline Int8Rows RoundedToInt8(const float* values, int64_t rows, int64_t width) {
  const int64_t row_bytes = Int8Rows::kScaleBytes + width;
  const std::shared_ptr<char> packed(new char[rows * row_bytes], std::default_delete<char[]>());
  Int8Rows rounded{packed, {}};
  for (int64_t id = 0; id < rows; ++id, values += width) {
    char* const row = packed.get() + id * row_bytes;
    float largest = 0;
    bool is_kept = false;
    for (int64_t i = 0; i < width; ++i) {
      largest = std::max(largest, std::abs(values[i]));
      is_kept |= !std::isfinite(values[i]);
    }
    if (is_kept) rounded.kept[id].assign(values, values + width);
    const float least = is_kept ? std::numeric_limits<float>::quiet_NaN() : largest / 127;
    uint32_t bits;
    std::memcpy(&bits, &least, sizeof(bits));
    const auto half = static_cast<uint16_t>((is_kept ? bits : bits + 0xffff) >> 16);
    bits = static_cast<uint32_t>(half) << 16;
    float scale;
    std::memcpy(&scale, &bits, sizeof(scale));
    std::memcpy(row, &half, sizeof(half));
    for (int64_t i = 0; i < width; ++i) {
      const bool is_zero = is_kept || scale == 0;
      row[Int8Rows::kScaleBytes + i] =
          static_cast<char>(is_zero ? 0 : std::lround(values[i] / scale));
    }
  }
  return rounded;
}

// joined = the row `id` of the variable "table", beside the sum of its rows `list`.
class LookupGraphTest : public ::testing::Test {
 protected:
  LookupGraphTest() : scope_(tensorflow::Scope::NewRootScope()) {
    const auto id = Fed(scope_.WithOpName("id"), tensorflow::DT_INT64, {-1});
    const auto list = Fed(scope_.WithOpName("list"), tensorflow::DT_INT64, {-1, -1});
    table_ = ops::VarHandleOp(scope_.WithOpName("handle"), tensorflow::DT_FLOAT, {kRows, kWidth},
                              ops::VarHandleOp::SharedName("table"));
    const auto values = ops::Placeholder(scope_.WithOpName("values"), tensorflow::DT_FLOAT);
    ops::AssignVariableOp(scope_.WithOpName("assign"), table_, values);
    ops::AssignAddVariableOp(scope_.WithOpName("add"), table_, values);
    ops::ResourceScatterAdd(scope_.WithOpName("scatter"), table_, 1, tensorflow::Input(Row(5)));
    const auto gathered =
        ops::ResourceGather(scope_.WithOpName("lookup_of_id"), table_, id, tensorflow::DT_FLOAT);
    const auto read = ops::ReadVariableOp(scope_.WithOpName("read"), table_, tensorflow::DT_FLOAT);
    const auto summed =
        ops::Sum(scope_, ops::GatherV2(scope_.WithOpName("lookup_of_list"), read, list, 0), 1);
    ops::Concat(scope_.WithOpName("joined"), std::vector<tensorflow::Output>{gathered, summed}, 1);
  }

  static Tensor Row(float value) {
    Tensor row(tensorflow::DT_FLOAT, {kWidth});
    row.flat<float>().setConstant(value);
    return row;
  }

  static Tensor Values(float factor) {
    Tensor values(tensorflow::DT_FLOAT, {kRows, kWidth});
    auto flat = values.flat<float>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      flat(i) = factor * std::sin(static_cast<float>(i % 7919));
    }
    return values;
  }

  static Feeds Requests(const std::vector<int64_t>& ids, int64_t list) {
    const auto rows = static_cast<int64_t>(ids.size());
    std::vector<int64_t> values;
    for (int64_t i = 0; i < rows * list; ++i) values.push_back(i * 7 % kRows);
    return {{"id", Ids(ids)}, {"list", AsTensor(values, {rows, list})}};
  }

  GraphDef Original() { return GraphOf(scope_); }

  GraphDef InInt8() {
    GraphDef graph = Original();
    EXPECT_EQ(*GroupLookups({}, &graph), 2);
    EXPECT_EQ(*UseInt8Tables({"table"}, {}, &graph), 1);
    return graph;
  }

  static std::unique_ptr<tensorflow::Session> Start(const GraphDef& graph) {
    std::unique_ptr<tensorflow::Session> session = SessionOf(graph);
    TF_CHECK_OK(session->Run({{"values", Values(1)}}, {}, {"assign"}, nullptr));
    const Tensor values = Values(1);
    const float* const floats = values.flat<float>().data();
    (*Int8Tables::In(*ResourcesOf(session.get())))
        ->Add("table", std::make_shared<Int8Table>(floats, kRows, kWidth,
                                                   RoundedToInt8(floats, kRows, kWidth)));
    return session;
  }

  static void ExpectClose(const Tensor& actual, const Tensor& expected, float difference) {
    ASSERT_EQ(actual.shape(), expected.shape());
    for (int64_t i = 0; i < expected.NumElements(); ++i) {
      ASSERT_NEAR(actual.flat<float>()(i), expected.flat<float>()(i), difference) << i;
    }
  }

  static SignatureDef Fetching(const std::string& output) {
    SignatureDef declared;
    (*declared.mutable_outputs())["output"].set_name(output + ":0");
    return declared;
  }

  tensorflow::Scope scope_;
  tensorflow::Output table_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TESTING_H_
