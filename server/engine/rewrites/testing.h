// Tensors, graphs and sessions, for the engine's tests.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_TESTING_H_
#define COLCAST_SERVER_ENGINE_REWRITES_TESTING_H_

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "server/base/scratch.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

using Feeds = std::vector<std::pair<std::string, tensorflow::Tensor>>;

template <typename T>
tensorflow::Tensor AsTensor(const std::vector<T>& values, const std::vector<int64_t>& dims) {
  tensorflow::Tensor tensor(tensorflow::DataTypeToEnum<T>::value, tensorflow::TensorShape(dims));
  std::copy(values.begin(), values.end(), tensor.flat<T>().data());
  return tensor;
}

template <typename T = float>
std::vector<T> ElementsOf(const tensorflow::Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return {flat.data(), flat.data() + flat.size()};
}

inline tensorflow::Tensor Ids(const std::vector<int64_t>& values) {
  return AsTensor(values, {static_cast<int64_t>(values.size())});
}

// An input or output of one value per row, or of a list per row if `rank` is 2.
inline tensorflow::TensorInfo Info(const std::string& node, int64_t rows = -1, int rank = 1) {
  tensorflow::TensorInfo info;
  info.set_name(node + ":0");
  const bool is_number = absl::EndsWith(node, "/length") || absl::StartsWith(node, "row_to_");
  info.set_dtype(is_number ? tensorflow::DT_INT64 : tensorflow::DT_FLOAT);
  info.mutable_tensor_shape()->add_dim()->set_size(rows);
  if (rank == 2) info.mutable_tensor_shape()->add_dim()->set_size(-1);
  return info;
}

// A placeholder of this shape; `scope` names it.
inline tensorflow::Output Fed(const tensorflow::Scope& scope, tensorflow::DataType type,
                              const std::vector<int64_t>& dims) {
  return tensorflow::ops::Placeholder(
      scope, type, tensorflow::ops::Placeholder::Shape(tensorflow::PartialTensorShape(dims)));
}

inline tensorflow::GraphDef GraphOf(const tensorflow::Scope& scope) {
  tensorflow::GraphDef graph;
  TF_CHECK_OK(scope.ToGraphDef(&graph));
  return graph;
}

// A session in which the graph's node `init`, if there is one, has run.
inline std::unique_ptr<tensorflow::Session> SessionOf(const tensorflow::GraphDef& graph) {
  std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession({}));
  TF_CHECK_OK(session->Create(graph));
  for (const auto& node : graph.node()) {
    if (node.name() == "init") TF_CHECK_OK(session->Run({}, {}, {"init"}, nullptr));
  }
  return session;
}
inline std::unique_ptr<tensorflow::Session> SessionOf(const tensorflow::Scope& scope) {
  return SessionOf(GraphOf(scope));
}

inline absl::StatusOr<tensorflow::Tensor> Fetch(tensorflow::Session* session, const Feeds& feeds,
                                                const std::string& fetch = "joined:0") {
  std::vector<tensorflow::Tensor> outputs;
  absl::Status status = session->Run(feeds, {fetch}, {}, &outputs);
  if (!status.ok()) return status;
  return outputs[0];
}

// The graph with a rewrite applied, which must change this number of places.
template <typename Rewrite>
tensorflow::GraphDef RewrittenBy(const Rewrite& rewrite, tensorflow::GraphDef graph, int places,
                                 const std::set<std::string>& feeds = {}) {
  const absl::StatusOr<int> changed = rewrite(feeds, &graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(*changed, places);
  return graph;
}

// Expects two sessions to answer a request with the same bits.
inline void ExpectSameBits(tensorflow::Session* actual, tensorflow::Session* expected,
                           const Feeds& feeds, const std::string& fetch = "joined:0") {
  const auto one = Fetch(actual, feeds, fetch), other = Fetch(expected, feeds, fetch);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(one->shape(), other->shape());
  EXPECT_TRUE(one->tensor_data() == other->tensor_data()) << one->shape();
}

// Expects that a thread keeps no memory after a large run. run(true) uses large tensors, of up to
// 16 MB, and frees them; run(false) uses small ones.
inline void ExpectNothingKept(const std::function<void(bool is_large)>& run) {
  mallopt(M_MMAP_THRESHOLD, 1 << 17);  // large blocks are mapped, and counted as such
  tensorflow::Tensor(tensorflow::DT_FLOAT, {1 << 22});  // TensorFlow's allocator keeps its blocks
  run(false);
  const size_t before = mallinfo2().hblkhd;
  run(true);
  EXPECT_LT(mallinfo2().hblkhd, before + kMostKeptBytes);
}

// The inputs of a graph's node.
inline std::vector<std::string> InputsOf(const tensorflow::GraphDef& graph,
                                         const std::string& name) {
  for (const auto& node : graph.node()) {
    if (node.name() == name) return {node.input().begin(), node.input().end()};
  }
  return {};
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_TESTING_H_
