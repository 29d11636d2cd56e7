#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/engine/signature.h"
#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using tensorflow::tstring;
using ::testing::ElementsAre;

RunResult Result() {
  RunResult result;
  result.aliases = {"score", "tag"};
  result.tensors = {AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2}),
                    AsTensor<tstring>({"a", "b", "c"}, {3})};
  result.expansion.rows = 3;
  return result;
}

std::vector<int64_t> Dims(const OutputColumn& column) {
  return {column.dims.begin(), column.dims.end()};
}

TEST(TensorOutputsTest, AllRowsAreOneRequests) {
  const TensorOutputs outputs(Result());
  ASSERT_EQ(outputs.columns().size(), 2);
  EXPECT_EQ(outputs.columns()[0].name, "score");
  EXPECT_THAT(Dims(outputs.columns()[0]), ElementsAre(3, 2));
  EXPECT_EQ(outputs.expansion().rows, 3);
}

TEST(TensorOutputsTest, AMemberHasItsRowsOfEveryTensor) {
  ExpansionStats stats;
  stats.rows = 2;
  const TensorOutputs outputs(std::make_shared<const RunResult>(Result()), 1, 2, stats);
  const OutputColumn& score = outputs.columns()[0];
  EXPECT_THAT(Dims(score), ElementsAre(2, 2));
  EXPECT_EQ(static_cast<const float*>(score.data)[0], 3);
  const OutputColumn& tag = outputs.columns()[1];
  EXPECT_EQ(tag.string_at(tag.data, 1), "c");
  EXPECT_EQ(outputs.expansion().rows, 2);
}

}  // namespace
}  // namespace colcast::engine
