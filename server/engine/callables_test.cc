#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/engine/rewrites/testing.h"
#include "server/engine/signature.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using ::testing::ElementsAre;

// The value of a fetch is its name, a number. Making a callable that also fetches "wait" blocks
// until `go` is notified.
class FakeSession final : public tensorflow::Session {
 public:
  absl::Status Create(const tensorflow::GraphDef&) override { return absl::OkStatus(); }
  absl::Status Extend(const tensorflow::GraphDef&) override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
  absl::Status Run(const std::vector<std::pair<std::string, Tensor>>&,
                   const std::vector<std::string>&, const std::vector<std::string>&,
                   std::vector<Tensor>*) override {
    return absl::UnimplementedError("");
  }
  absl::Status ListDevices(std::vector<tensorflow::DeviceAttributes>*) override {
    return absl::UnimplementedError("");
  }
  absl::Status LocalDeviceManager(const tensorflow::DeviceMgr**) override {
    return absl::UnimplementedError("");
  }
  absl::Status MakeCallable(const tensorflow::CallableOptions& options,
                            CallableHandle* handle) override {
    for (const std::string& fetch : options.fetch()) {
      if (fetch == "wait") {
        waits.Notify();
        go.WaitForNotification();
      }
    }
    *handle = num_made++;
    ++num_open;
    made.push_back(options);
    return absl::OkStatus();
  }
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>&,
                           std::vector<Tensor>* fetched, tensorflow::RunMetadata*) override {
    for (const std::string& fetch : made[handle].fetch()) {
      fetched->push_back(Tensor(static_cast<int64_t>(std::atoi(fetch.c_str()))));
    }
    return absl::OkStatus();
  }
  absl::Status ReleaseCallable(CallableHandle) override {
    --num_open;
    return absl::OkStatus();
  }

  CallableHandle num_made = 0;
  std::vector<tensorflow::CallableOptions> made;
  int num_open = 0;
  absl::Notification waits;
  absl::Notification go;
};

std::vector<std::string> Numbers(int count) {
  std::vector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

std::vector<int64_t> ValuesOf(Callables* callables, const std::vector<int>& outputs) {
  std::vector<Tensor> tensors;
  EXPECT_TRUE(callables->Run({}, outputs, &tensors).ok());
  std::vector<int64_t> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.scalar<int64_t>()());
  return values;
}

TEST(Callables, OutputsOfOneTensorShareAFetch) {
  FakeSession session;
  Callables callables({}, {"3", "4", "3"}, &session, 0);
  EXPECT_THAT(ValuesOf(&callables, {0, 1, 2}), ElementsAre(3, 4, 3));
  EXPECT_EQ(session.made[0].fetch_size(), 2);
}

TEST(Callables, EachSetOfOutputsIsPreparedOnce) {
  FakeSession session;
  Callables callables({}, Numbers(3), &session, 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(ValuesOf(&callables, {0}), ElementsAre(0));
    EXPECT_THAT(ValuesOf(&callables, {1, 2}), ElementsAre(1, 2));
  }
  EXPECT_EQ(session.num_made, 2);
}

TEST(Callables, RequestsForManySetsOfOutputsShareOneCallable) {
  FakeSession session;
  constexpr int kSets = 100;
  {
    Callables callables({}, Numbers(kSets), &session, 0);
    for (int i = 0; i < kSets; ++i) EXPECT_THAT(ValuesOf(&callables, {i}), ElementsAre(i));
    EXPECT_THAT(ValuesOf(&callables, {5, 90}), ElementsAre(5, 90));
    EXPECT_EQ(session.num_made, Callables::kMost + 1);  // kMost sets, and all outputs
    EXPECT_EQ(session.num_open, session.num_made);
  }
  EXPECT_EQ(session.num_open, 0);
}

TEST(Callables, OtherCallablesRunWhileOneIsMade) {
  FakeSession session;
  Callables callables({}, {"1", "wait"}, &session, 0);
  ASSERT_TRUE(callables.Prepare({0}).ok());
  std::thread making([&] { ValuesOf(&callables, {1}); });
  session.waits.WaitForNotification();
  std::thread other([&] { EXPECT_THAT(ValuesOf(&callables, {0}), ElementsAre(1)); });
  other.join();
  session.go.Notify();
  making.join();
}

// Returns 1 / x and x / 3, computed on the caller's thread or on a pool thread.
std::vector<float> Quotients(float x, int inter_op_parallelism) {
  namespace ops = tensorflow::ops;
  const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
  const auto fed = ops::Placeholder(scope.WithOpName("x"), tensorflow::DT_FLOAT);
  ops::Reciprocal(scope.WithOpName("inverse"), fed);
  ops::Div(scope.WithOpName("third"), fed, 3.0f);
  const std::unique_ptr<tensorflow::Session> session = SessionOf(scope);
  Callables callables({"x:0"}, {"inverse:0", "third:0"}, session.get(), inter_op_parallelism);
  std::vector<Tensor> tensors;
  TF_CHECK_OK(callables.Run({Tensor(x)}, {0, 1}, &tensors));
  return {tensors[0].scalar<float>()(), tensors[1].scalar<float>()()};
}

TEST(Callables, ResultsOnTheCallersThreadAreBitIdenticalToPoolThreads) {
  const std::vector<float> of_denormal = Quotients(-1e-40f, 1);
  EXPECT_EQ(Quotients(-1e-40f, 0), of_denormal);
  const std::vector<float> of_normal = Quotients(1.0f, 1);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  EXPECT_EQ(Quotients(1.0f, 0), of_normal);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(Quotients(-1e-40f, 0), of_denormal);
}

}  // namespace
}  // namespace colcast::engine
