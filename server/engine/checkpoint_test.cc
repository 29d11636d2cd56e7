#include "server/engine/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace colcast::engine {
namespace {

tensorflow::MetaGraphDef WithVariable(const std::string& restore_op) {
  tensorflow::MetaGraphDef model;
  model.mutable_graph_def()->add_node()->set_op("VarHandleOp");
  model.mutable_saver_def()->set_restore_op_name(restore_op);
  return model;
}

class CheckCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_ + "/variables"); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = ::testing::TempDir() + "/check_checkpoint_test";
};

TEST_F(CheckCheckpointTest, AVersionWithoutItsIndexIsStillBeingCopied) {
  const absl::Status status = CheckCheckpoint(directory_, WithVariable("save/restore_all"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("variables/variables.index"));
}

TEST_F(CheckCheckpointTest, AVersionWithItsIndexIsWhole) {
  std::ofstream(directory_ + "/variables/variables.index") << "index";
  EXPECT_TRUE(CheckCheckpoint(directory_, WithVariable("save/restore_all")).ok());
}

TEST_F(CheckCheckpointTest, VariablesThatNothingRestoresNeedNoIndex) {
  EXPECT_TRUE(CheckCheckpoint(directory_, WithVariable("")).ok());
}

TEST_F(CheckCheckpointTest, AGraphWithoutVariablesNeedsNoIndex) {
  tensorflow::MetaGraphDef model = WithVariable("save/restore_all");
  model.clear_graph_def();
  EXPECT_TRUE(CheckCheckpoint(directory_, model).ok());
}

}  // namespace
}  // namespace colcast::engine
