#include "server/engine/mapping/table_deltas.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "server/engine/mapping/map_variables.h"
#include "server/engine/mapping/testing.h"
#include "server/tables/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TableDeltasTest : public MappingTest {
 protected:
  TableDeltasTest() : variables_(Graph(), {}, kBytes) {
    EXPECT_TRUE(variables_.Find(session_.get()));
    tensorflow::SignatureDef declared;
    (*declared.mutable_outputs())["whole"].set_name("second_value:0");
    graph_ = Served();
    variables_.Read("s", declared, &graph_);
    TF_CHECK_OK(variables_.CopyOthers(session_.get()));
    std::filesystem::create_directories(directory_ + "/deltas");
  }

  tables::TestFile Delta(const std::string& table, const std::vector<int64_t>& ids, float value,
                         int64_t sequence) const {
    std::ifstream file(prefix_ + ".index", std::ios::binary);
    const std::string index{std::istreambuf_iterator<char>(file), {}};
    tables::TestFile delta;
    delta.metadata = {{"format", "colcast-rows"},
                      {"format_version", "1"},
                      {"checkpoint", tables::ChecksumOf(index)},
                      {"sequence", std::to_string(sequence)}};
    delta.tensors["table"] = {"U8", {static_cast<int64_t>(table.size())}, table};
    delta.tensors["ids"] = tables::TensorOf("I64", ids);
    const auto rows = static_cast<int64_t>(ids.size());
    delta.tensors["rows"] =
        tables::TensorOf("F32", std::vector<float>(rows * kWidth, value), {rows, kWidth});
    return delta;
  }
  void Write(const tables::TestFile& delta, const std::string& number) const {
    tables::WriteTestFile(directory_ + "/new", delta.Bytes());
    std::filesystem::rename(directory_ + "/new",
                            directory_ + "/deltas/delta-00000" + number + ".safetensors");
  }

  // Applies the deltas in the folder and returns the report.
  TableMemory Applied() {
    TableMemory memory;
    TableDeltas(directory_, variables_.Tables()).AddTo(&memory);
    return memory;
  }
  void ExpectRefused(const tables::TestFile& delta, const std::string& says) {
    Write(delta, "1");
    const TableMemory memory = Applied();
    EXPECT_EQ(memory.deltas, 0);
    EXPECT_THAT(memory.delta_error, HasSubstr(says));
    EXPECT_THAT(memory.delta_error, HasSubstr("delta-000001.safetensors"));
  }

  const std::unique_ptr<tensorflow::Session> session_ = Restored();
  MappedVariables variables_;
  tensorflow::GraphDef graph_;
};

TEST_F(TableDeltasTest, ARunReadsTheGenerationOfItsThread) {
  Write(Delta("first", {1, 3}, 100, 1), "1");
  const TableDeltas deltas(directory_, variables_.Tables());
  EXPECT_THAT(*Run(session_.get(), {3, 4}), ElementsAre(9, 10, 11, 12, 13, 14));
  const tables::ReadsGeneration reads(deltas.now());
  EXPECT_THAT(*Run(session_.get(), {3, 4}), ElementsAre(100, 100, 100, 12, 13, 14));
}

TEST_F(TableDeltasTest, ANewDeltaIsAppliedWithoutChangingGenerationsInUse) {
  const TableDeltas deltas(directory_, variables_.Tables());
  const tables::ReadsGeneration before(deltas.now());
  Write(Delta("first", {3}, 100, 1), "1");
  while (deltas.now()->deltas == 0) std::this_thread::yield();
  EXPECT_THAT(*Run(session_.get(), {3}), ElementsAre(9, 10, 11));
  EXPECT_EQ(tables::ReadsGeneration::LastChangeOf(variables_.TablesOf(graph_)), 0);
  const tables::ReadsGeneration reads(deltas.now());
  EXPECT_THAT(*Run(session_.get(), {3}), ElementsAre(100, 100, 100));
  EXPECT_EQ(tables::ReadsGeneration::LastChangeOf(variables_.TablesOf(graph_)), 1);
}

TEST_F(TableDeltasTest, APinnedGenerationIsReadUntilItIsUnpinned) {
  const TableDeltas deltas(directory_, variables_.Tables());
  auto pinned = std::make_unique<tables::ReadsGeneration>(deltas.now(), true);
  Write(Delta("first", {3}, 100, 1), "1");
  while (deltas.now()->deltas == 0) std::this_thread::yield();
  {
    const tables::ReadsGeneration reads(deltas.now());
    EXPECT_EQ(tables::ReadsGeneration::Here()->deltas, 0);
  }
  pinned.reset();
  const tables::ReadsGeneration reads(deltas.now());
  EXPECT_EQ(tables::ReadsGeneration::Here()->deltas, 1);
}

TEST_F(TableDeltasTest, DeltasAreAppliedInOrderUpToAGap) {
  Write(Delta("first", {1}, 100, 1), "1");
  Write(Delta("first", {1}, 200, 2), "2");
  Write(Delta("first", {1}, 400, 4), "4");
  const TableMemory memory = Applied();
  EXPECT_EQ(memory.deltas, 2);
  EXPECT_THAT(memory.delta_error, IsEmpty());
  EXPECT_GT(memory.changed, 0);
  ASSERT_FALSE(memory.tables.empty());
  EXPECT_EQ(memory.tables[0].name, "first");
  EXPECT_EQ(memory.tables[0].last_delta, 2);
}

TEST_F(TableDeltasTest, ARefusedDeltaBlocksLaterOnes) {
  Write(Delta("first", {1}, 100, 3), "1");
  Write(Delta("first", {1}, 200, 2), "2");
  const TableMemory memory = Applied();
  EXPECT_EQ(memory.deltas, 0);
  EXPECT_THAT(memory.delta_error, HasSubstr("it is delta 3, expected 1"));
}

TEST_F(TableDeltasTest, ErrorsSayWhyADeltaFitsNoMappedTable) {
  ExpectRefused(Delta("none", {1}, 1, 1), "the model has no table \"none\"");
  ExpectRefused(Delta("second", {1}, 1, 1), "table \"second\" is not mapped: signature \"s\"");
  ExpectRefused(Delta("small", {1}, 1, 1), "table \"small\" is not mapped: it has 8 bytes");
  ExpectRefused(Delta("first", {1, kRows}, 1, 1), "table \"first\" has 10 rows, no row 10");
  tables::TestFile delta = Delta("first", {1}, 1, 1);
  delta.tensors["rows"] = tables::TensorOf<float>("F32", {1, 2}, {1, 2});
  ExpectRefused(delta, "its rows are F32[1,2], expected F32[1,3]");
  delta.tensors["rows"] = tables::TensorOf<int32_t>("I32", {1, 2, 3}, {1, 3});
  ExpectRefused(delta, "its rows are I32[1,3], expected F32[1,3]");
  delta = Delta("first", {1}, 1, 1);
  delta.metadata["checkpoint"] = "0000000000000000";
  ExpectRefused(delta, "made for the checkpoint 0000000000000000");
}

TEST_F(TableDeltasTest, ABadDeltaFileIsRefusedUntilItIsReplaced) {
  const std::string path = directory_ + "/deltas/delta-000001.safetensors";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Applied().delta_error, HasSubstr("not a regular file"));
  std::filesystem::remove(path);
  Write(Delta("first", {1}, 1, 1), "1");
  std::filesystem::resize_file(path, 40);
  EXPECT_THAT(Applied().delta_error, HasSubstr(path));
  Write(Delta("first", {1}, 1, 1), "1");
  EXPECT_EQ(Applied().deltas, 1);
}

}  // namespace
}  // namespace colcast::engine
