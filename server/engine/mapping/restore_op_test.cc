#include <gmock/gmock.h>

#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/mapping/testing.h"

namespace colcast::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using RestoreOpTest = MappingTest;

TEST_F(RestoreOpTest, LargeTensorsAreMappedAndSmallOnesRead) {
  const auto session = Restored();
  EXPECT_THAT(MappedTables::Of(session.get())->tables(), SizeIs(2));
  EXPECT_THAT(*Run(session.get(), {0, 9}), ElementsAre(0, 1, 2, 27, 28, 29));
  EXPECT_THAT(*Run(session.get(), {}, "small_value:0"), ElementsAre(8, 9));
}

TEST_F(RestoreOpTest, ATensorWithASecondReaderIsNotMapped) {
  tensorflow::GraphDef graph = Graph();
  tensorflow::NodeDef* const other = graph.add_node();
  other->set_name("other");
  other->set_op("Identity");
  other->add_input("read:1");
  (*other->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  const auto session = Restored(graph);
  EXPECT_THAT(MappedTables::Of(session.get())->tables(), SizeIs(1));
}

TEST_F(RestoreOpTest, ErrorsNameAFileThatIsTooShort) {
  std::filesystem::resize_file(data_, 100);
  absl::Status status;
  Restored(&status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(data_));
}

}  // namespace
}  // namespace colcast::engine
