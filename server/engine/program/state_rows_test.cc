#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/program/stage.h"
#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::tstring;
using ::testing::ElementsAre;

// Three rows of two floats and one text.
const std::vector<Tensor> kTensors = {AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2}),
                                      AsTensor<tstring>({"a", "", "text"}, {3})};

class StateRowsTest : public ::testing::Test {
 protected:
  states::StateRef State(const std::vector<Tensor>& tensors, int64_t row) {
    const uint32_t number = *layouts_.NumberOf(tensors);
    return MakeState(layouts_.at(number), number, tensors, row);
  }
  StateLayouts layouts_;
  std::vector<Tensor> all_;
};

TEST_F(StateRowsTest, AStateIsReadAsItWasWritten) {
  ASSERT_TRUE(LayOutStates(layouts_, {State(kTensors, 2), State(kTensors, 0)}, {}, {}, &all_).ok());
  EXPECT_THAT(ElementsOf(all_[0]), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(ElementsOf<tstring>(all_[1]), ElementsAre("text", "a"));
  EXPECT_EQ(all_[0].shape(), tensorflow::TensorShape({2, 2}));
}

TEST_F(StateRowsTest, MissingStatesAreFilledFromComputedRows) {
  const std::vector<Tensor> made = {AsTensor<float>({7, 8, 9, 10}, {2, 2}),
                                    AsTensor<tstring>({"x", "y"}, {2})};
  ASSERT_TRUE(LayOutStates(layouts_, {{}, State(kTensors, 1), {}}, {}, made, &all_).ok());
  EXPECT_THAT(ElementsOf(all_[0]), ElementsAre(7, 8, 3, 4, 9, 10));
  EXPECT_THAT(ElementsOf<tstring>(all_[1]), ElementsAre("x", "", "y"));
}

TEST_F(StateRowsTest, OnlyWantedRowsAreLaidOut) {
  const std::vector<states::StateRef> found = {State(kTensors, 0), {}, State(kTensors, 2)};
  ASSERT_TRUE(LayOutStates(layouts_, found, {0, 2}, {}, &all_).ok());
  EXPECT_THAT(ElementsOf(all_[0]), ElementsAre(1, 2, 5, 6));
}

TEST_F(StateRowsTest, StatesOfDifferentShapesAreNotLaidOutTogether) {
  const std::vector<Tensor> wider = {AsTensor<float>({1, 2, 3}, {1, 3}),
                                     AsTensor<tstring>({"a"}, {1})};
  EXPECT_EQ(LayOutStates(layouts_, {State(kTensors, 0), State(wider, 0)}, {}, {}, &all_).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(LayOutStates(layouts_, {State(kTensors, 0), {}}, {}, wider, &all_).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(StateRowsTest, LayoutsWithEqualDtypesAndInnerShapesAreEqual) {
  const std::optional<uint32_t> number = layouts_.NumberOf(kTensors);
  ASSERT_TRUE(number);
  EXPECT_EQ(layouts_.NumberOf({AsTensor<float>({1, 2}, {1, 2}), AsTensor<tstring>({"b"}, {1})}),
            number);
  EXPECT_TRUE(layouts_.Fits(*number, kTensors));
  EXPECT_FALSE(layouts_.Fits(*number, {kTensors[0]}));
  EXPECT_NE(layouts_.NumberOf({kTensors[0]}), number);
}

TEST_F(StateRowsTest, AScalarHasNoLayout) {
  EXPECT_FALSE(layouts_.NumberOf({AsTensor<float>({1}, {})}));
}

TEST_F(StateRowsTest, TheNumberOfLayoutsIsBounded) {
  for (int64_t width = 1; width <= 1000; ++width) {
    EXPECT_TRUE(layouts_.NumberOf({Tensor(tensorflow::DT_FLOAT, {1, width})}));
  }
  EXPECT_FALSE(layouts_.NumberOf({Tensor(tensorflow::DT_FLOAT, {1, 1001})}));
  EXPECT_TRUE(layouts_.NumberOf({Tensor(tensorflow::DT_FLOAT, {1, 1000})}));
}

}  // namespace
}  // namespace colcast::engine
