// A checkpoint and a session that restores it, for the tests of this folder.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_TESTING_H_
#define COLCAST_SERVER_ENGINE_MAPPING_TESTING_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/mapping/gather_op.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/io_ops.h"
#include "tensorflow/cc/ops/no_op.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace colcast::engine {

// A checkpoint with the float tables `first` [10, 3], which holds 0 to 29, `second`, which holds
// their negatives, and `small` [2]. A tensor of one byte precedes them, so their addresses are odd.
class MappingTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 10, kWidth = 3;
  static constexpr int64_t kBytes = kRows * kWidth * sizeof(float);

  MappingTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ + "/variables");
    tensorflow::BundleWriter writer(tensorflow::Env::Default(), prefix_);
    std::vector<float> values(kRows * kWidth), negatives(kRows * kWidth);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i);
      negatives[i] = -values[i];
    }
    TF_CHECK_OK(writer.Add("aa", AsTensor<int8_t>({1}, {1})));
    TF_CHECK_OK(writer.Add("first", AsTensor<float>(values, {kRows, kWidth})));
    TF_CHECK_OK(writer.Add("second", AsTensor<float>(negatives, {kRows, kWidth})));
    TF_CHECK_OK(writer.Add("small", AsTensor<float>({8, 9}, {2})));
    TF_CHECK_OK(writer.Finish());
  }
  ~MappingTest() override { std::filesystem::remove_all(directory_); }

  // Variables with the checkpoint's names, restored by the node `restore`. The node `rows` gathers
  // rows of `first` by the fed `ids`.
  tensorflow::GraphDef Graph() const {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto names = {"first", "second", "small"};
    std::vector<tensorflow::tstring> keys(names.begin(), names.end());
    const auto read =
        ops::RestoreV2(scope.WithOpName("read"), tensorflow::tstring(prefix_),
                       AsTensor<tensorflow::tstring>(keys, {3}),
                       AsTensor<tensorflow::tstring>(std::vector<tensorflow::tstring>(3), {3}),
                       tensorflow::DataTypeVector(3, tensorflow::DT_FLOAT));
    std::vector<tensorflow::Operation> assigned;
    const auto ids = ops::Placeholder(scope.WithOpName("ids"), tensorflow::DT_INT64);
    for (size_t i = 0; i < keys.size(); ++i) {
      const tensorflow::TensorShape shape =
          i < 2 ? tensorflow::TensorShape({kRows, kWidth}) : tensorflow::TensorShape({2});
      const std::string name(keys[i]);
      const auto handle = ops::VarHandleOp(scope.WithOpName(name), tensorflow::DT_FLOAT, shape,
                                           ops::VarHandleOp::SharedName(name));
      assigned.push_back(ops::AssignVariableOp(scope, handle, read.tensors[i]).operation);
      if (i == 0) {
        ops::ResourceGather(scope.WithOpName("rows"), handle, ids, tensorflow::DT_FLOAT);
      } else {
        ops::ReadVariableOp(scope.WithOpName(name + "_value"), handle, tensorflow::DT_FLOAT);
      }
    }
    ops::NoOp(scope.WithOpName("restore").WithControlDependencies(assigned));
    return GraphOf(scope);
  }

  // Like Graph(), but without the nodes that restore the variables, as in a signature's graph.
  tensorflow::GraphDef Served() const {
    tensorflow::GraphDef graph = Graph(), served;
    for (const tensorflow::NodeDef& node : graph.node()) {
      const bool restores = node.op() == "AssignVariableOp" || node.op() == "RestoreV2";
      if (!restores && node.name() != "restore") *served.add_node() = node;
    }
    return served;
  }

  // A session in which the variables are restored; tables of `least_bytes` or more are mapped.
  std::unique_ptr<tensorflow::Session> Restored(absl::Status* status = nullptr,
                                                int64_t least_bytes = kBytes) const {
    return Restored(Graph(), status, least_bytes);
  }
  static std::unique_ptr<tensorflow::Session> Restored(tensorflow::GraphDef graph,
                                                       absl::Status* status = nullptr,
                                                       int64_t least_bytes = kBytes) {
    MapRestored(least_bytes, &graph);
    for (tensorflow::NodeDef& node : *graph.mutable_node()) {
      if (node.name() == "rows") MakeMappedGather(&node);  // tables are unaligned
    }
    tensorflow::SessionOptions options;
    options.config.set_inter_op_parallelism_threads(-1);  // on the caller's thread
    std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession(options));
    TF_CHECK_OK(session->Create(graph));
    const absl::Status restored = session->Run({}, {}, {"restore"}, nullptr);
    if (status == nullptr) {
      TF_CHECK_OK(restored);
    } else {
      *status = restored;
    }
    return session;
  }

  // The values of `node`, or the error.
  static absl::StatusOr<std::vector<float>> Run(tensorflow::Session* session,
                                                const std::vector<int64_t>& ids,
                                                const std::string& node = "rows:0") {
    std::vector<tensorflow::Tensor> outputs;
    const auto fed = AsTensor<int64_t>(ids, {static_cast<int64_t>(ids.size())});
    absl::Status status = session->Run({{"ids:0", fed}}, {node}, {}, &outputs);
    if (!status.ok()) return status;
    return ElementsOf(outputs[0]);
  }

  // Writes to the data of `first`.
  void Damage() const {
    std::fstream file(data_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1 + sizeof(float));
    file.write("????", 4);
  }

  const std::string directory_ = ::testing::TempDir() + "/mapping_test_" + std::to_string(getpid());
  const std::string prefix_ = directory_ + "/variables/variables";
  const std::string data_ = prefix_ + ".data-00000-of-00001";
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_TESTING_H_
