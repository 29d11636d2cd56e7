#include "server/rpc/offload.h"

#include <gtest/gtest.h>

namespace colcast::rpc {
namespace {

using std::chrono::milliseconds;
using State = OffloadCircuit::State;

class OffloadCircuitTest : public testing::Test {
 protected:
  static OffloadCircuit::Time At(int ms) {
    return OffloadCircuit::Time(milliseconds(1'000'000 + ms));
  }

  OffloadCircuit circuit_{/*patience=*/milliseconds(500), /*pause=*/milliseconds(1000)};
};

TEST_F(OffloadCircuitTest, AFailedServerGetsNoCallsUntilItAnswers) {
  EXPECT_EQ(circuit_.At(At(0)), State::kAnswers);
  EXPECT_TRUE(circuit_.Failed(At(0)));
  EXPECT_EQ(circuit_.At(At(999)), State::kLeftAlone);
  EXPECT_EQ(circuit_.At(At(1000)), State::kMayAnswer);
  EXPECT_FALSE(circuit_.Failed(At(1100)));  // already left alone
  EXPECT_EQ(circuit_.At(At(2099)), State::kLeftAlone);
  EXPECT_TRUE(circuit_.Answered());
  EXPECT_EQ(circuit_.At(At(2100)), State::kAnswers);
  EXPECT_FALSE(circuit_.Answered());
}

TEST_F(OffloadCircuitTest, ShortWaitsAddUpUntilAnAnswer) {
  EXPECT_FALSE(circuit_.TimedOut(At(0), At(200)));
  EXPECT_FALSE(circuit_.TimedOut(At(1000), At(1200)));
  EXPECT_FALSE(circuit_.Answered());
  EXPECT_FALSE(circuit_.TimedOut(At(2000), At(2300)));
  EXPECT_EQ(circuit_.At(At(2300)), State::kAnswers);
  EXPECT_TRUE(circuit_.TimedOut(At(3000), At(3200)));
  EXPECT_EQ(circuit_.At(At(3200)), State::kLeftAlone);
}

TEST_F(OffloadCircuitTest, SimultaneousCallsWaitOnce) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(circuit_.TimedOut(At(0), At(400 + i / 2)));
  EXPECT_TRUE(circuit_.TimedOut(At(0), At(500)));
}

TEST_F(OffloadCircuitTest, AShortWaitDoesNotRestoreAFailedServer) {
  EXPECT_TRUE(circuit_.TimedOut(At(0), At(500)));
  EXPECT_FALSE(circuit_.TimedOut(At(1500), At(1501)));
  EXPECT_EQ(circuit_.At(At(1502)), State::kLeftAlone);
  circuit_.Answered();
  circuit_.Failed(At(3000));
  EXPECT_FALSE(circuit_.TimedOut(At(4000), At(4001)));  // not long enough to judge the server
  EXPECT_EQ(circuit_.At(At(4001)), State::kMayAnswer);
}

}  // namespace
}  // namespace colcast::rpc
